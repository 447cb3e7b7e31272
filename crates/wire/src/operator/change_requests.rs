//! Operations on change requests.

use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_domain::change_request::{ChangePreview, ChangeRequest, ChangeRequestFilter};
use vouchsafe_domain::operator::Role;

use crate::column::col;
use crate::error_code::Code;
use crate::operation::{Page, operations};
use crate::operator::decision::{ConfirmedChange, DeclineRequest};
use crate::operator::operation::SecondOperator::Never;
use crate::operator::operation::{Operation, OperatorAccess, get, post};

operations! {
    OperatorAccess;
    LIST_CHANGE_REQUESTS: Operation<ChangeRequestFilter, Page<ChangeRequest>> =
        get("/requests", Role::Viewer, "listChangeRequests", "List change requests")
            .columns(&[
                col("Request", "request_id"),
                col("Change", "kind"),
                col("Object", "object"),
                col("Status", "status"),
                col("Requested by", "requested_by").at(3),
                col("Requested", "requested_at").at(6),
                col("Expires", "expires_at"),
            ]);
    GET_CHANGE_REQUEST: Operation<(), ChangeRequestWithPreview> =
        get("/requests/{request_id}", Role::Viewer, "getChangeRequest", "Get a change request");
    CONFIRM_CHANGE_REQUEST: Operation<(), ConfirmedChange> = post(
        "/requests/{request_id}/confirm",
        Role::Operator,
        Never,
        "confirmChangeRequest",
        "Confirm a change request",
    )
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
            ]);
    DECLINE_CHANGE_REQUEST: Operation<DeclineRequest, ChangeRequest> =
        post("/requests/{request_id}/decline", Role::Operator, Never, "declineChangeRequest", "Decline a change request")
            .errors(&[Code::ChangeRequestNotWaiting]);
}

/// A change request, and what its change would do now.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChangeRequestWithPreview {
    #[serde(flatten)]
    pub request: ChangeRequest,
    /// Computed when it is read. Null once the request has ended, and for a change that only adds something
    /// or carries an order on.
    #[schema(required)]
    pub preview: Option<ChangePreview>,
}
