//! Changes that need a second operator: list, confirm, decline.

use vouchsafe_domain::change_request::{ChangeKind, ChangeRequestStatus};
use vouchsafe_wire::operator::change_requests;

use vouchsafe_domain::operator::OperatorName;
use vouchsafe_wire::operator::required_role;

use super::audit_of;
use crate::json::Json;
use crate::layout::Viewer;
use crate::page::{Action, List, Object, Page, REASON, choice, col, filter, labels};

fn is_open(request: &Json) -> bool {
    request.is("status", "WAITING")
}

/// A request that a crash left without an outcome can be confirmed again.
fn is_confirmable(request: &Json) -> bool {
    is_open(request) || request.is("status", "CONFIRMED")
}

fn is_own(request: &Json, viewer: &Viewer) -> bool {
    request.is("requested_by", &viewer.name)
}

/// The token of the settings belongs to no person. A change that needs an admin is confirmed by an admin.
fn may_confirm(request: &Json, viewer: &Viewer) -> bool {
    let kind = request.get("kind").text().unwrap_or_default();
    let role = kind.parse().ok().map(required_role);
    !is_own(request, viewer)
        && viewer.name != OperatorName::settings_token().as_str()
        && role.is_some_and(|role| viewer.role >= role)
}

pub(super) static PAGES: [Page; 2] = [
    Page::list(
        "/requests",
        "Requests",
        List::of(change_requests::LIST_CHANGE_REQUESTS).filters(&[
            choice("status", "Status", labels::<ChangeRequestStatus>),
            choice("kind", "Change", labels::<ChangeKind>),
            filter("object", "Object"),
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
                col("Now", "preview.before"),
                col("Afterwards", "preview.after"),
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
            .only_for(may_confirm)
            .note("The change is carried out at once, in the name of the operator that requested it.")
            .shows("The change was carried out"),
        Action::new("decline", "Decline", change_requests::DECLINE_CHANGE_REQUEST)
            .inputs(&[REASON])
            .when(is_open)
            .only_for(|request, viewer| !is_own(request, viewer))
            .done("The request was declined."),
        Action::new("withdraw", "Withdraw", change_requests::DECLINE_CHANGE_REQUEST)
            .inputs(&[REASON])
            .when(is_open)
            .only_for(is_own)
            .note("You requested this change. Another operator confirms it, or you withdraw it.")
            .done("The request was withdrawn."),
    ]),
];
