//! Audit trail, operators and their tokens.

use vouchsafe_wire::operator::{monitoring, operators};

use crate::page::{Action, FROM, Input, List, Page, TO, choice, filter};

pub(super) static PAGES: [Page; 4] = [
    Page::list(
        "/audit",
        "Audit trail",
        List::of(monitoring::LIST_AUDIT)
            .filters(&[
                filter("operator", "Operator"),
                filter("action", "Action"),
                filter("subject", "Subject"),
                filter("partner_id", "Partner"),
                choice("code_reads", "Retrievals of codes", || vec!["true", "false"]),
                FROM,
                TO,
            ])
            .defaults(&[("code_reads", "false")]),
    ),
    Page::list(
        "/operators",
        "Operators",
        List::of(operators::LIST_OPERATORS).row_actions(&[
            Action::new("role", "Change the role", operators::CHANGE_OPERATOR)
                .inputs(&[Input::field("role", "Role")])
                .note("In force at once.")
                .done("The role was changed."),
            Action::new("disable", "Disable", operators::CHANGE_OPERATOR)
                .fixed(&[("disabled", "true")])
                .when(|operator| *operator.get("disabled") == crate::json::Json::Bool(false))
                .dangerous()
                .note("All tokens of the operator are refused and its sessions end at once.")
                .done("The operator is disabled."),
            Action::new("enable", "Enable", operators::CHANGE_OPERATOR)
                .fixed(&[("disabled", "false")])
                .when(|operator| *operator.get("disabled") == crate::json::Json::Bool(true))
                .done("The operator is enabled."),
        ]),
    )
    .actions(&[
        Action::new("create", "Create an operator", operators::CREATE_OPERATOR)
            .inputs(&[
                Input::field("name", "Name").hint("In the audit trail. It cannot be changed."),
                Input::field("role", "Role"),
            ])
            .done("The operator was created. Issue a token on the page of the operator."),
    ]),
    Page::list(
        "/operators/{name}/tokens",
        "Tokens of",
        List::of(operators::LIST_OPERATOR_TOKENS).row_actions(&[Action::new(
            "revoke",
            "Revoke",
            operators::REVOKE_OPERATOR_TOKEN,
        )
        .when(|token| token.get("revoked_at").is_empty())
        .dangerous()
        .note("In force at once.")
        .done("The token was revoked.")]),
    )
    .actions(&[
        Action::new("issue", "Issue a token", operators::ISSUE_OPERATOR_TOKEN)
            .inputs(&[
                Input::field("days", "Days until it expires"),
                Input::field("token_sha256", "SHA-256 of a token")
                    .hint("In hex, if the operator has generated the token: then only the operator sees it."),
            ])
            .note("The token is shown once.")
            .shows("New token: it is shown only now"),
    ]),
    Page::list(
        "/sessions",
        "Sessions",
        List::of(operators::LIST_OPERATOR_SESSIONS)
            .filters(&[filter("operator", "Operator")])
            .row_actions(&[Action::new("end", "End", operators::END_OPERATOR_SESSION)
                .when(|session| session.get("ended_at").is_empty())
                .note("In force at once. Operators end their own sessions, admins all.")
                .done("The session has ended.")]),
    ),
];
