//! OpenAPI operations of `/operators`, `/operator-tokens` and `/sessions`.

use serde_json::{Value, json};
use vouchsafe_wire::operator::operators;

use super::{OPERATOR, describe, describe_public};
use crate::openapi::Operation;

pub(super) fn operators() -> [Operation; operators::OPERATIONS.len()] {
    [
        describe(operators::LIST_OPERATORS, "In byte order of their names.")
            .list("Page of operators.", operator()),
        describe(
            operators::CREATE_OPERATOR,
            "The operator has no token yet: issue one. If the settings \
            require a second operator, the account is inactive until its holder activates a token.",
        )
        .json_body(json!({ "name": "jane.doe", "role": "operator" }))
        .created("The operator.", operator()),
        describe(
            operators::CHANGE_OPERATOR,
            "Changes the role, or refuses all tokens of the operator \
            until it is enabled again. Omitted fields stay unchanged. In force on all nodes for requests \
            that begin after the response. Another admin changes your own account, so the last admin \
            cannot lock themselves out.",
        )
        .json_body(json!({ "role": "viewer" }))
        .ok("The operator after the change.", operator()),
        describe(
            operators::LIST_OPERATOR_TOKENS,
            "Newest first, with those that were revoked or expired in the last 90 days.",
        )
        .list("Page of tokens.", token()),
        describe(
            operators::ISSUE_OPERATOR_TOKEN,
            "Only this response contains the token; store it. An \
            operator has at most 20 valid tokens. A token that a second operator confirms is inactive: \
            that operator alone receives `activation_code`, and gives it to the holder of the token. A \
            session issues tokens of its own account that end with it, and none if the settings require a \
            second operator.",
        )
        .optional_json_body(json!({ "days": 30 }))
        .created("The token.", issued_token()),
        describe(
            operators::REVOKE_OPERATOR_TOKEN,
            "In force on all nodes for requests that begin after the response.",
        )
        .no_content("The token is revoked."),
        describe(
            operators::LIST_OPERATOR_IDENTITIES,
            "The person at the identity provider to whom the \
            account belongs: one at most. The first sign-in by OpenID Connect links them.",
        )
        .list(
            "Page of identities.",
            json!({ "issuer": "https://id.example.com", "subject": "248289761001" }),
        ),
        describe(
            operators::UNLINK_OPERATOR_IDENTITIES,
            "Ends all sessions and revokes all API tokens of \
            the account. The account and its role stay. The next sign-in with the name of the account as \
            its verified e-mail address links the account again, also of another person: disable the \
            account to end access.",
        )
        .no_content("The account belongs to no identity."),
        describe(
            operators::ISSUE_SIGN_IN_LINK,
            "A page that begins a session of the operator in the \
            console, once, within 10 minutes. A new link replaces the earlier one of the operator. \
            Operators issue links for themselves; an admin also for others, unless changes need a second \
            operator.",
        )
        .created(
            "The link.",
            json!({
                "operator": "jane.doe",
                "url": format!("https://console.example.com/sign-in/link?token=vsl_{}", "0".repeat(64)),
                "expires_at": "2026-11-20T12:10:00.123456Z",
            }),
        ),
        describe(
            operators::LIST_OPERATOR_SESSIONS,
            "Sessions in the console, newest first, with those \
            that ended in the last 30 days. Admins see all of them, others their own.",
        )
        .list("Page of sessions.", session()),
        describe(
            operators::END_OPERATOR_SESSION,
            "In force on all nodes for requests that begin after the \
            response. Admins end all sessions, others their own.",
        )
        .no_content("The session has ended."),
    ]
}

fn issued_token() -> Value {
    let mut issued = token();
    issued["token"] = format!("vso_{}", "0".repeat(64)).into();
    issued["activation_code"] = Value::Null;
    issued
}

pub(super) fn activation() -> Operation {
    let description = "Send the inactive token as `Authorization: Bearer TOKEN`, and the code that the \
        confirming operator received. Each code works once.";
    describe_public(operators::ACTIVATE_OPERATOR_TOKEN, description)
        .secured(&[OPERATOR])
        .json_body(json!({ "activation_code": format!("vsa_{}", "0".repeat(64)) }))
        .ok("The active token.", token())
}

fn session() -> Value {
    json!({
        "session_id": "ses_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "operator": "jane.doe", "method": "link", "address": "203.0.113.7",
        "created_at": "2026-11-20T12:00:00.123456Z", "authenticated_at": "2026-11-20T11:59:58.000000Z",
        "last_used_at": "2026-11-20T14:10:00.123456Z",
        "expires_at": "2026-11-20T14:40:00.123456Z", "ended_at": null,
    })
}

fn operator() -> Value {
    json!({
        "name": "jane.doe", "role": "operator", "disabled": false, "active": true, "created_at": "2026-11-20T12:00:00.123456Z",
    })
}

fn token() -> Value {
    json!({
        "token_id": "otk_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "operator": "jane.doe",
        "created_at": "2026-11-20T12:00:00.123456Z", "expires_at": "2027-02-18T12:00:00.123456Z",
        "last_used_at": null, "revoked_at": null, "active": true,
    })
}
