//! OpenAPI operations of `/requests`, and the response of changes that need a second operator.

use serde_json::{Value, json};
use vouchsafe_domain::change_request::ChangeRequest;
use vouchsafe_wire::operator::change_requests;

use super::describe;
use crate::openapi::{Operation, OperationResponse};

pub(super) fn change_requests() -> [Operation; change_requests::OPERATIONS.len()] {
    [
        describe(change_requests::LIST_CHANGE_REQUESTS, "Newest first.").list("Page of requests.", request()),
        describe(
            change_requests::GET_CHANGE_REQUEST,
            "With the change, without codes, and with what it would replace now.",
        )
        .ok("The request.", request_with_preview()),
        describe(
            change_requests::CONFIRM_CHANGE_REQUEST,
            "Carries the change out in the name of its \
            requester. You need the role that the change requires, and cannot have requested it yourself. \
            The response, also an error, is that of the operation of the change, as the requester would \
            have received it: only you see a new credential. After 503 the request stays `CONFIRMED`; \
            confirm it again after a minute. A repetition makes the change once, but for a credential: \
            revoke the first one then.",
        )
        .responses([
            (
                200,
                "The changed object.",
                json!({ "payout_id": "po_0198c1f2a3b47c5d8e9f0a1b2c3d4e61", "status": "PAID" }),
            ),
            (
                201,
                "The created object.",
                json!({ "transaction_id": "txn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "amount": 5000 }),
            ),
        ]),
        describe(
            change_requests::DECLINE_CHANGE_REQUEST,
            "Its requester withdraws it with the same call.",
        )
        .optional_json_body(json!({ "reason": "the statement has another amount" }))
        .ok("The declined request.", declined_request()),
    ]
}

fn request_with_preview() -> Value {
    let mut request = request();
    request["preview"] = json!({ "before": { "balance": 1200 }, "after": { "balance": 6200 } });
    request
}

fn declined_request() -> Value {
    let mut declined = request();
    declined["status"] = "DECLINED".into();
    declined["decided_by"] = "sam".into();
    declined["decided_at"] = "2026-11-20T12:05:00.123456Z".into();
    declined["reason"] = "the statement has another amount".into();
    declined
}

/// The response of a change that needs a second operator.
pub(super) fn waiting_response() -> OperationResponse {
    let description = "The settings require a second operator: the change waits for one.";
    OperationResponse::json::<ChangeRequest>(202, description, request())
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
