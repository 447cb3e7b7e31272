//! OpenAPI operations of `/operators`, `/operator-tokens` and `/sessions`.

use serde_json::{Value, json};
use vouchsafe_domain::operator::{OperatorAccount, OperatorIdentity, OperatorTokenSummary};
use vouchsafe_domain::operator_session::{OperatorSession, SessionFilter};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::filter::{NoFilter, WholeList};
use vouchsafe_wire::operator::operators::{
    ActivationRequest, IssueTokenRequest, IssuedOperatorToken, NewOperator, OperatorPatch,
};
use vouchsafe_wire::operator::sessions::SignInLink;

use super::{OPERATOR, OPERATORS, json_write_operation, read_operation};
use crate::openapi::{Operation, OperationResponse};

pub fn list(operation: Operation) -> Operation {
    read_operation(operation, "listOperators")
        .describe(OPERATORS, "List operators", "In byte order of their names.")
        .list::<WholeList, OperatorAccount>("Page of operators.", operator())
}

pub fn create(operation: Operation) -> Operation {
    json_write_operation(operation, "createOperator")
        .describe(
            OPERATORS,
            "Create an operator",
            "The operator has no token yet: issue one. If the settings require a second operator, the account is inactive until its holder \
             activates a token.",
        )
        .json_body::<NewOperator>(json!({ "name": "jane.doe", "role": "operator" }))
        .created::<OperatorAccount>("The operator.", operator())
        .errors(&[Code::OperatorExists])
}

pub fn change(operation: Operation) -> Operation {
    json_write_operation(operation, "changeOperator")
        .describe(
            OPERATORS,
            "Change an operator",
            "Changes the role, or refuses all tokens of the operator until it is enabled again. Omitted fields stay unchanged. In \
             force on all nodes for requests that begin after the response. Another admin changes your own account, so the last \
             admin cannot lock themselves out.",
        )
        .json_body::<OperatorPatch>(json!({ "role": "viewer" }))
        .ok::<OperatorAccount>("The operator after the change.", operator())
        .errors(&[Code::OwnAccount, Code::InvalidRowHmac])
}

pub fn list_tokens(operation: Operation) -> Operation {
    read_operation(operation, "listOperatorTokens")
        .describe(
            OPERATORS,
            "List tokens of an operator",
            "Newest first, with those that were revoked or expired in the last 90 days.",
        )
        .list::<NoFilter, OperatorTokenSummary>("Page of tokens.", token())
}

pub fn issue_token(operation: Operation) -> Operation {
    let mut issued = token();
    issued["token"] = format!("vso_{}", "0".repeat(64)).into();
    issued["activation_code"] = Value::Null;
    json_write_operation(operation, "issueOperatorToken")
        .describe(
            OPERATORS,
            "Issue a token",
            "Only this response contains the token; store it. An operator has at most 20 valid tokens. A token that a second operator \
             confirms is inactive: that operator alone receives `activation_code`, and gives it to the holder of the token. A session issues \
             tokens of its own account that end with it, and none if the settings require a second operator.",
        )
        .optional_json_body::<IssueTokenRequest>(json!({ "days": 30 }))
        .created::<IssuedOperatorToken>("The token.", issued)
        .errors(&[
            Code::StepUpRequired,
            Code::CredentialLimitReached,
            Code::InvalidRowHmac,
        ])
}

pub fn activate_token(operation: Operation) -> Operation {
    operation
        .id("activateOperatorToken")
        .secured(&[OPERATOR])
        .describe(
            OPERATORS,
            "Activate a token",
            "Send the inactive token as `Authorization: Bearer TOKEN`, and the code that the confirming operator received. Each code works once.",
        )
        .json_body::<ActivationRequest>(json!({ "activation_code": format!("vsa_{}", "0".repeat(64)) }))
        .ok::<OperatorTokenSummary>("The active token.", token())
        .errors(&[
            Code::InvalidCredentials,
            Code::RateLimitExceeded,
            Code::MalformedRequest,
            Code::RequestTimeout,
            Code::PayloadTooLarge,
            Code::UnsupportedMediaType,
            Code::ValidationFailed,
        ])
}

pub fn revoke_token(operation: Operation) -> Operation {
    read_operation(operation, "revokeOperatorToken")
        .describe(
            OPERATORS,
            "Revoke a token",
            "In force on all nodes for requests that begin after the response.",
        )
        .response(OperationResponse::empty(204, "The token is revoked."))
}

pub fn list_identities(operation: Operation) -> Operation {
    read_operation(operation, "listOperatorIdentities")
        .describe(
            OPERATORS,
            "List identities of an operator",
            "The person at the identity provider to whom the account belongs: one at most. The first sign-in by OpenID Connect links them.",
        )
        .list::<WholeList, OperatorIdentity>(
            "Page of identities.",
            json!({ "issuer": "https://id.example.com", "subject": "248289761001" }),
        )
}

pub fn unlink_identities(operation: Operation) -> Operation {
    read_operation(operation, "unlinkOperatorIdentities")
        .describe(
            OPERATORS,
            "Unlink an operator from the identity provider",
            "Ends all sessions and revokes all API tokens of the account. The account and its role stay. The next sign-in with the name of the account as \
             its verified e-mail address links the account again, also of another person: disable the account to end access.",
        )
        .response(OperationResponse::empty(204, "The account belongs to no identity."))
}

pub fn issue_sign_in_link(operation: Operation) -> Operation {
    read_operation(operation, "issueSignInLink")
        .describe(
            OPERATORS,
            "Issue a sign-in link",
            "A page that begins a session of the operator in the console, once, within 10 minutes. A new link replaces the earlier one of \
             the operator. Operators issue links for themselves; an admin also for others, unless changes need a second operator.",
        )
        .created::<SignInLink>(
            "The link.",
            json!({
                "operator": "jane.doe",
                "url": format!("https://console.example.com/sign-in/link?token=vsl_{}", "0".repeat(64)),
                "expires_at": "2026-11-20T12:10:00.123456Z",
            }),
        )
        .errors(&[Code::Forbidden, Code::OperatorDisabled])
}

pub fn list_sessions(operation: Operation) -> Operation {
    read_operation(operation, "listOperatorSessions")
        .describe(
            OPERATORS,
            "List sessions",
            "Sessions in the console, newest first, with those that ended in the last 30 days. Admins see all of them, others their own.",
        )
        .list::<SessionFilter, OperatorSession>("Page of sessions.", session())
        .errors(&[Code::Forbidden])
}

pub fn end_session(operation: Operation) -> Operation {
    read_operation(operation, "endOperatorSession")
        .describe(
            OPERATORS,
            "End a session",
            "In force on all nodes for requests that begin after the response. Admins end all sessions, others their own.",
        )
        .response(OperationResponse::empty(204, "The session has ended."))
        .errors(&[Code::Forbidden])
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
