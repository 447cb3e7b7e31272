//! Audit trail, operators and their tokens.

use vouchsafe_domain::operator::Role;
use vouchsafe_wire::operator::{monitoring, operators};

use crate::page::{Action, FROM, Input, InputKind, List, Page, TO, View, col, filter, labels, link, target};

pub(super) static PAGES: [Page; 4] = [
    Page {
        path: "/audit",
        title: "Audit trail",
        view: View::List(List {
            api: target(monitoring::LIST_AUDIT),
            columns: &[
                col("Number", "audit_id"),
                col("Time", "at"),
                col("Operator", "operator"),
                col("Action", "action"),
                col("Subject", "subject"),
                col("Before", "before"),
                col("After", "after"),
                col("Trace", "trace_id"),
            ],
            filters: &[
                filter("operator", "Operator"),
                filter("action", "Action"),
                filter("subject", "Subject"),
                filter("partner_id", "Partner"),
                FROM,
                TO,
            ],
            row_actions: &[],
            is_complete: true,
            variants: &[],
        }),
        actions: &[],
    },
    Page {
        path: "/operators",
        title: "Operators",
        view: View::List(List {
            api: target(operators::LIST_OPERATORS),
            columns: &[
                link("Name", "name", "/operators/{name}/tokens"),
                col("Role", "role"),
                col("Disabled", "disabled"),
                col("Active", "active"),
                col("Created", "created_at"),
            ],
            filters: &[],
            row_actions: &[
                Action::new("role", "Change the role", operators::CHANGE_OPERATOR)
                    .inputs(&[Input::new("role", "Role", InputKind::Choice(labels::<Role>)).prefilled()])
                    .note("In force at once.")
                    .done("The role was changed."),
                Action::new("disable", "Disable", operators::CHANGE_OPERATOR)
                    .fixed(&[("disabled", "true")])
                    .when(|operator| *operator.get("disabled") == crate::json::Json::Bool(false))
                    .note("All tokens of the operator are refused and its sessions end at once.")
                    .done("The operator is disabled."),
                Action::new("enable", "Enable", operators::CHANGE_OPERATOR)
                    .fixed(&[("disabled", "false")])
                    .when(|operator| *operator.get("disabled") == crate::json::Json::Bool(true))
                    .done("The operator is enabled."),
            ],
            is_complete: true,
            variants: &[],
        }),
        actions: &[
            Action::new("create", "Create an operator", operators::CREATE_OPERATOR)
                .inputs(&[
                    Input::line("name", "Name").hint("In the audit trail. It cannot be changed."),
                    Input::new("role", "Role", InputKind::Choice(labels::<Role>)),
                ])
                .done("The operator was created. Issue a token on the page of the operator."),
        ],
    },
    Page {
        path: "/operators/{name}/tokens",
        title: "Tokens of",
        view: View::List(List {
            api: target(operators::LIST_OPERATOR_TOKENS),
            columns: &[
                col("Token", "token_id"),
                col("Created", "created_at"),
                col("Expires", "expires_at"),
                col("Last used", "last_used_at"),
                col("Revoked", "revoked_at"),
                col("Active", "active"),
            ],
            filters: &[],
            row_actions: &[Action::new("revoke", "Revoke", operators::REVOKE_OPERATOR_TOKEN)
                .when(|token| token.get("revoked_at").is_empty())
                .note("In force at once.")
                .done("The token was revoked.")],
            is_complete: true,
            variants: &[],
        }),
        actions: &[
            Action::new("issue", "Issue a token", operators::ISSUE_OPERATOR_TOKEN)
                .inputs(&[
                    Input::new("days", "Days until it expires", InputKind::Number)
                        .optional()
                        .hint("1 to 366. Empty: 90."),
                    Input::line("token_sha256", "SHA-256 of a token").optional().hint(
                        "In hex, if the operator has generated the token: then only the operator sees it.",
                    ),
                ])
                .note("The token is shown once.")
                .shows("New token: it is shown only now"),
        ],
    },
    Page {
        path: "/sessions",
        title: "Sessions",
        view: View::List(List {
            api: target(operators::LIST_OPERATOR_SESSIONS),
            columns: &[
                col("Session", "session_id"),
                col("Operator", "operator"),
                col("Signed in by", "method"),
                col("Address", "address"),
                col("Signed in", "created_at"),
                col("Last used", "last_used_at"),
                col("Ends", "expires_at"),
                col("Ended", "ended_at"),
            ],
            filters: &[filter("operator", "Operator")],
            row_actions: &[Action::new("end", "End", operators::END_OPERATOR_SESSION)
                .when(|session| session.get("ended_at").is_empty())
                .note("In force at once. Operators end their own sessions, admins all.")
                .done("The session has ended.")],
            is_complete: true,
            variants: &[],
        }),
        actions: &[],
    },
];
