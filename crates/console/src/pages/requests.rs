//! Changes that need a second operator: list, confirm, decline.

use vouchsafe_domain::change_request::{ChangeKind, ChangeRequestStatus};
use vouchsafe_wire::operator::change_requests;

use super::audit_of;
use crate::json::Json;
use crate::page::{Action, Column, Input, InputKind, List, Object, Page, View, choice, col, labels, target};

pub(super) const REQUEST_COLUMNS: [Column; 7] = [
    col("Request", "request_id"),
    col("Change", "kind"),
    col("Object", "object"),
    col("Status", "status"),
    col("Requested by", "requested_by"),
    col("Requested", "requested_at"),
    col("Expires", "expires_at"),
];

fn is_open(request: &Json) -> bool {
    request.is("status", "WAITING")
}

/// A request that a crash left without an outcome can be confirmed again.
fn is_confirmable(request: &Json) -> bool {
    is_open(request) || request.is("status", "CONFIRMED")
}

pub(super) static PAGES: [Page; 2] = [
    Page {
        path: "/requests",
        title: "Requests",
        view: View::List(List {
            api: target(change_requests::LIST_CHANGE_REQUESTS),
            columns: &REQUEST_COLUMNS,
            filters: &[
                choice("status", "Status", labels::<ChangeRequestStatus>),
                choice("kind", "Change", labels::<ChangeKind>),
            ],
            row_actions: &[],
            is_complete: true,
            variants: &[],
        }),
        actions: &[],
    },
    Page {
        path: "/requests/{request_id}",
        title: "Request",
        view: View::Object(Object {
            none: "",
            api: Some(target(change_requests::GET_CHANGE_REQUEST)),
            name: "request_id",
            facts: &[
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
            sections: &[audit_of(
                "subject={request_id}&limit=20",
                "/audit?subject={request_id}",
            )],
        }),
        actions: &[
            Action::new("confirm", "Confirm", change_requests::CONFIRM_CHANGE_REQUEST)
                .when(is_confirmable)
                .note("The change is carried out at once, in the name of the operator that requested it.")
                .shows("The change was carried out"),
            Action::new("decline", "Decline", change_requests::DECLINE_CHANGE_REQUEST)
                .inputs(&[Input::new("reason", "Reason", InputKind::Paragraph)
                    .optional()
                    .hint("For the operator that requested the change.")])
                .when(is_open)
                .done("The request was declined."),
        ],
    },
];
