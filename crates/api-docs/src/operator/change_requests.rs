//! OpenAPI operations of `/requests`, and the response of changes that need a second operator.

use serde_json::{Value, json};
use vouchsafe_domain::change_request::{ChangeRequest, ChangeRequestFilter};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::decision::{ConfirmedChange, DeclineRequest};

use super::{CHANGE_REQUESTS, json_write_operation, read_operation};
use crate::openapi::{Operation, OperationResponse};

/// Adds the response of a change that needs a second operator.
pub(super) fn may_wait(operation: Operation) -> Operation {
    operation.accepted::<ChangeRequest>(
        "The settings require a second operator: the change waits for one.",
        request(),
    )
}

pub fn list(operation: Operation) -> Operation {
    read_operation(operation, "listChangeRequests")
        .describe(CHANGE_REQUESTS, "List change requests", "Newest first.")
        .list::<ChangeRequestFilter, ChangeRequest>("Page of requests.", request())
}

pub fn get(operation: Operation) -> Operation {
    read_operation(operation, "getChangeRequest")
        .describe(
            CHANGE_REQUESTS,
            "Get a change request",
            "With the change, without codes.",
        )
        .ok::<ChangeRequest>("The request.", request())
}

pub fn confirm(operation: Operation) -> Operation {
    read_operation(operation, "confirmChangeRequest")
        .describe(
            CHANGE_REQUESTS,
            "Confirm a change request",
            "Carries the change out in the name of its requester. You need the role that the change requires, and cannot have \
             requested it yourself. The response, also an error, is that of the operation of the change, as the requester would \
             have received it: only you see a new credential. After 503 the request stays `CONFIRMED`; confirm it again after a \
             minute. A repetition makes the change once, but for a credential: revoke the first one then.",
        )
        .response(OperationResponse::json::<ConfirmedChange>(
            200,
            "The changed object.",
            json!({ "payout_id": "po_0198c1f2a3b47c5d8e9f0a1b2c3d4e61", "status": "PAID" }),
        ))
        .response(OperationResponse::json::<ConfirmedChange>(
            201,
            "The created object.",
            json!({ "transaction_id": "txn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "amount": 5000 }),
        ))
        .errors(&[
            Code::OwnChangeRequest,
            Code::StepUpRequired,
            Code::ChangeRequestNotWaiting,
            Code::ValidationFailed,
            Code::PartnerNotFound,
            Code::OrderNotFound,
            Code::PayoutNotFound,
            Code::OperatorNotFound,
            Code::InsufficientFunds,
            Code::IdempotencyKeyReused,
            Code::IdempotencyInProgress,
            Code::OrderNotAwaitingApproval,
            Code::OrderNotFulfillable,
            Code::PayoutNotPending,
            Code::CertificationRequired,
            Code::CredentialLimitReached,
            Code::InvalidRowHmac,
            Code::CredentialIssuedBefore,
            Code::OperatorExists,
        ])
}

pub fn decline(operation: Operation) -> Operation {
    let mut declined = request();
    declined["status"] = "DECLINED".into();
    declined["decided_by"] = "sam".into();
    declined["decided_at"] = "2026-11-20T12:05:00.123456Z".into();
    declined["reason"] = "the statement has another amount".into();
    json_write_operation(operation, "declineChangeRequest")
        .describe(
            CHANGE_REQUESTS,
            "Decline a change request",
            "Its requester withdraws it with the same call.",
        )
        .optional_json_body::<DeclineRequest>(json!({ "reason": "the statement has another amount" }))
        .ok::<ChangeRequest>("The declined request.", declined)
        .errors(&[Code::ChangeRequestNotWaiting])
}

fn request() -> Value {
    json!({
        "request_id": "crq_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "kind": "TOP_UP",
        "object": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "details": { "amount": "5000.00", "reference": "statement-118", "currency": "USD" },
        "status": "WAITING", "requested_by": "jane.doe", "requested_at": "2026-11-20T12:00:00.123456Z",
        "expires_at": "2026-11-21T12:00:00.123456Z", "decided_by": null, "decided_at": null, "reason": null, "error_code": null,
    })
}
