//! Changes that need a second operator: list, confirm, decline.

use vouchsafe_domain::change_request::{ChangeKind, ChangeRequestStatus};
use vouchsafe_wire::operator::change_requests;

use super::audit_of;
use crate::json::Json;
use crate::page::{Action, List, Object, Page, REASON, choice, col, labels};

fn is_open(request: &Json) -> bool {
    request.is("status", "WAITING")
}

/// A request that a crash left without an outcome can be confirmed again.
fn is_confirmable(request: &Json) -> bool {
    is_open(request) || request.is("status", "CONFIRMED")
}

pub(super) static PAGES: [Page; 2] = [
    Page::list(
        "/requests",
        "Requests",
        List::of(change_requests::LIST_CHANGE_REQUESTS).filters(&[
            choice("status", "Status", labels::<ChangeRequestStatus>),
            choice("kind", "Change", labels::<ChangeKind>),
        ]),
    ),
    Page::object(
        "/requests/{request_id}",
        "Request",
        Object::of(
            change_requests::GET_CHANGE_REQUEST,
            "request_id",
            &[
                col("Status", "status"),
                col("Change", "kind"),
                col("Object", "object"),
                col("Details", "details"),
                col("Requested by", "requested_by"),
                col("Requested", "requested_at"),
                col("Expires", "expires_at"),
                col("Decided by", "decided_by"),
                col("Decided", "decided_at"),
                col("Reason", "reason"),
                col("Refused with", "error_code"),
            ],
            &[audit_of(
                "subject={request_id}&limit=20",
                "/audit?subject={request_id}",
            )],
        ),
    )
    .actions(&[
        Action::new("confirm", "Confirm", change_requests::CONFIRM_CHANGE_REQUEST)
            .when(is_confirmable)
            .note("The change is carried out at once, in the name of the operator that requested it.")
            .shows("The change was carried out"),
        Action::new("decline", "Decline", change_requests::DECLINE_CHANGE_REQUEST)
            .inputs(&[REASON])
            .when(is_open)
            .done("The request was declined."),
    ]),
];
