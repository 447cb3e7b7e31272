//! Operations and bodies of `/operators`.

use secrecy::SecretString;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;
use vouchsafe_domain::bounds::Count;
use vouchsafe_domain::change_request::ChangeKind;
use vouchsafe_domain::operator::{
    OperatorAccount, OperatorIdentity, OperatorName, OperatorTokenSummary, Role,
};
use vouchsafe_domain::operator_session::{OperatorSession, SessionFilter};
use vouchsafe_security::operator_token::OperatorTokenHash;
use vouchsafe_security::secret::expose;

use crate::column::col;
use crate::error_body::InvalidRequest;
use crate::error_code::Code;
use crate::filter::{NoFilter, WholeList};
use crate::json;
use crate::operation::{self, Page, operations};
use crate::operator::operation::SecondOperator::{Always, Never, Sometimes};
use crate::operator::operation::{Operation, OperatorAccess, delete, get, patch, post};
use crate::operator::sessions::SignInLink;

/// Authenticates with the inactive token itself.
pub const ACTIVATE_OPERATOR_TOKEN: operation::Operation<ActivationRequest, OperatorTokenSummary, ()> =
    operation::Operation::new(
        operation::Method::Post,
        "/activation",
        (),
        "activateOperatorToken",
        "Activate a token",
    )
    .errors(&[Code::InvalidCredentials, Code::RateLimitExceeded]);

operations! {
    OperatorAccess;
    LIST_OPERATORS: Operation<WholeList, Page<OperatorAccount>> =
        get("/operators", Role::Viewer, "listOperators", "List operators")
            .columns(&[
                col("Name", "name").link("/operators/{name}/tokens"),
                col("Role", "role"),
                col("Disabled", "disabled"),
                col("Active", "active"),
                col("Created", "created_at"),
            ]);
    CREATE_OPERATOR: Operation<NewOperator, OperatorAccount> =
        post("/operators", Role::Admin, Always(&[ChangeKind::OperatorCreate]), "createOperator", "Create an operator")
            .errors(&[Code::OperatorExists]);
    CHANGE_OPERATOR: Operation<OperatorPatch, OperatorAccount> =
        patch("/operators/{name}", Role::Admin, Sometimes(&[ChangeKind::OperatorChange]), "changeOperator", "Change an operator")
            .errors(&[Code::OwnAccount, Code::InvalidRowHmac]);
    LIST_OPERATOR_TOKENS: Operation<NoFilter, Page<OperatorTokenSummary>> =
        get("/operators/{name}/tokens", Role::Viewer, "listOperatorTokens", "List tokens of an operator")
            .columns(&[
                col("Token", "token_id"),
                col("Created", "created_at").at(5),
                col("Expires", "expires_at"),
                col("Last used", "last_used_at").at(4),
                col("Revoked", "revoked_at"),
                col("Active", "active").at(1),
            ]);
    ISSUE_OPERATOR_TOKEN: Operation<IssueTokenRequest, IssuedOperatorToken> = post(
        "/operators/{name}/tokens",
        Role::Admin,
        Sometimes(&[ChangeKind::OperatorTokenIssue]),
        "issueOperatorToken",
        "Issue a token",
    )
        .errors(&[Code::StepUpRequired, Code::CredentialLimitReached, Code::InvalidRowHmac]);
    REVOKE_OPERATOR_TOKEN: Operation<(), ()> =
        delete("/operator-tokens/{token_id}", Role::Admin, Never, "revokeOperatorToken", "Revoke a token");
    LIST_OPERATOR_IDENTITIES: Operation<WholeList, Page<OperatorIdentity>> =
        get("/operators/{name}/identities", Role::Admin, "listOperatorIdentities", "List identities of an operator")
            .columns(&[
                col("Subject", "subject"),
                col("Issuer", "issuer").text(20),
            ]);
    UNLINK_OPERATOR_IDENTITIES: Operation<(), ()> = delete(
        "/operators/{name}/identities",
        Role::Admin,
        Never,
        "unlinkOperatorIdentities",
        "Unlink an operator from the identity provider",
    );
    ISSUE_SIGN_IN_LINK: Operation<(), SignInLink> =
        post("/operators/{name}/sign-in-links", Role::Viewer, Never, "issueSignInLink", "Issue a sign-in link")
            .errors(&[Code::Forbidden, Code::OperatorDisabled]);
    LIST_OPERATOR_SESSIONS: Operation<SessionFilter, Page<OperatorSession>> =
        get("/sessions", Role::Viewer, "listOperatorSessions", "List sessions").errors(&[Code::Forbidden])
            .columns(&[
                col("Session", "session_id"),
                col("Operator", "operator"),
                col("Signed in by", "method"),
                col("Address", "address"),
                col("Signed in", "created_at").at(7),
                col("Last used", "last_used_at"),
                col("Ends", "expires_at").at(2),
                col("Ended", "ended_at").at(3),
            ]);
    END_OPERATOR_SESSION: Operation<(), ()> =
        delete("/sessions/{session_id}", Role::Viewer, Never, "endOperatorSession", "End a session").errors(&[Code::Forbidden]);
}

/// Validity of a token without another request.
pub const DEFAULT_TOKEN_DAYS: u16 = 90;

/// A longer validity hides unused tokens.
pub const MAX_TOKEN_DAYS: u16 = 366;

/// A new operator.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewOperator {
    /// Name in the audit trail. It cannot be changed.
    pub name: OperatorName,
    /// What the operator may do.
    #[serde(deserialize_with = "json::enum_value")]
    pub role: Role,
}

/// Changes of an operator. Omitted fields stay unchanged.
#[derive(Debug, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
#[schema(as = OperatorChange)]
pub struct OperatorPatch {
    /// What the operator may do.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "json::optional_enum_value"
    )]
    #[arg(
        long,
        value_parser = vouchsafe_domain::arguments::enum_parser::<Role>(),
        help = "viewer, operator or admin"
    )]
    pub role: Option<Role>,
    /// Whether all tokens of the operator are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "true|false", help = "Whether all tokens are refused")]
    pub disabled: Option<bool>,
}

/// Request for a token.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct IssueTokenRequest {
    /// Days until the token expires, 1 to 366; default 90.
    #[serde(default, deserialize_with = "vouchsafe_domain::whole_number::optional")]
    #[schema(value_type = Option<Count<1, { MAX_TOKEN_DAYS as u32 }>>)]
    #[arg(
        long,
        value_name = "N",
        help = "Days until the token expires, 1 to 366 [default: 90]"
    )]
    days: Option<u16>,
    /// SHA-256 of the token in hex, if its operator has generated the token: then only the operator sees it.
    /// Required for the token of another operator while changes need a second operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9a-f]{64}$")]
    #[arg(
        long,
        value_name = "HASH",
        help = "SHA-256 in hex of a token that the operator has generated"
    )]
    token_sha256: Option<String>,
}

impl IssueTokenRequest {
    /// Days until the token expires.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn validate_days(&self) -> Result<u16, InvalidRequest> {
        let days = self.days.unwrap_or(DEFAULT_TOKEN_DAYS);
        if !(1..=MAX_TOKEN_DAYS).contains(&days) {
            return Err(InvalidRequest::field(
                "days",
                format!("expected 1 to {MAX_TOKEN_DAYS}"),
            ));
        }
        Ok(days)
    }

    /// Hash of the token, if its operator has generated the token.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn validate_hash(&self) -> Result<Option<OperatorTokenHash>, InvalidRequest> {
        let parse = |text: &String| {
            let hash = OperatorTokenHash::from_hex(text);
            hash.ok_or_else(|| InvalidRequest::field("token_sha256", "expected 64 lower-case hex digits"))
        };
        self.token_sha256.as_ref().map(parse).transpose()
    }
}

/// A new token with its text, which is shown once.
#[derive(Serialize, ToSchema)]
pub struct IssuedOperatorToken {
    #[serde(flatten)]
    pub summary: OperatorTokenSummary,
    /// The token, for `Authorization: Bearer`. Shown once; null if its operator has generated it.
    #[serde(serialize_with = "serialize_secret")]
    #[schema(value_type = Option<String>, required)]
    pub token: Option<SecretString>,
    /// Code with which the holder activates the token, if a second operator has confirmed it: for the
    /// confirming operator, shown once.
    #[serde(serialize_with = "serialize_secret")]
    #[schema(value_type = Option<String>, required)]
    pub activation_code: Option<SecretString>,
}

/// Activation of a token.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActivationRequest {
    /// The code that the confirming operator received.
    #[serde(serialize_with = "serialize_code", deserialize_with = "deserialize_code")]
    #[schema(value_type = String, pattern = "^vsa_[0-9a-f]{64}$", write_only)]
    activation_code: SecretString,
}

impl ActivationRequest {
    #[must_use]
    pub const fn new(activation_code: SecretString) -> Self {
        Self { activation_code }
    }

    /// The code as it was sent.
    #[must_use]
    pub fn code(&self) -> &[u8] {
        expose(&self.activation_code).as_bytes()
    }
}

fn serialize_code<S: Serializer>(code: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(expose(code))
}

fn deserialize_code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(SecretString::from)
}

/// Only for the response that creates the token.
fn serialize_secret<S: Serializer>(token: &Option<SecretString>, serializer: S) -> Result<S::Ok, S::Error> {
    token.as_ref().map(expose).serialize(serializer)
}
