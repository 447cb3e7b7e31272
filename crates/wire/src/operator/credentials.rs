//! Operations and bodies of `/partners/{partner_id}/credentials`.

use serde::{Deserialize, Serialize, Serializer};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::api_scope::ApiScopes;
use vouchsafe_domain::change_request::ChangeKind;
use vouchsafe_domain::ids::CredentialId;
use vouchsafe_domain::operator::Role;
use vouchsafe_domain::revocation::{DescendantPolicy, Revocation};
use vouchsafe_security::credential::{ApiSecret, Credential};
use vouchsafe_security::credential_summary::CredentialSummary;

use crate::column::col;
use crate::error_code::Code;
use crate::filter::NoFilter;
use crate::operation::{Page, operations};
use crate::operator::operation::SecondOperator::{Always, Never};
use crate::operator::operation::{Operation, OperatorAccess, delete, get, post};
use crate::partner::credentials::{RotateRequest, RotatedCredential};

operations! {
    OperatorAccess;
    LIST_CREDENTIALS: Operation<NoFilter, Page<CredentialDetails>> =
        get("/partners/{partner_id}/credentials", Role::Viewer, "listCredentials", "List the credentials of a partner")
            .columns(&[
                col("Credential", "credential_id"),
                col("In force", "live"),
                col("Allowlist", "allowlist").console_only(),
                col("Scopes", "scopes"),
                col("From", "not_before").at(5),
                col("Until", "not_after"),
                col("Revoked", "revoked_at"),
                col("Rotated from", "rotated_from").console_only(),
                col("Rotated", "rotated_at").terminal_only(),
            ]);
    ISSUE_CREDENTIAL: Operation<NewCredential, IssuedCredential> = post(
        "/partners/{partner_id}/credentials",
        Role::Admin,
        Always(&[ChangeKind::CredentialIssue]),
        "issueCredential",
        "Issue a credential",
    )
        .errors(&[Code::CertificationRequired, Code::CredentialLimitReached, Code::InvalidRowHmac]);
    REVOKE_CREDENTIAL: Operation<RevocationQuery, Revocation> =
        delete("/credentials/{credential_id}", Role::Admin, Never, "revokeCredential", "Revoke a credential");
    ROTATE_CREDENTIAL: Operation<RotateRequest, RotatedCredential<'static>> = post(
        "/credentials/{credential_id}/rotate",
        Role::Admin,
        Always(&[ChangeKind::CredentialRotate]),
        "rotateCredential",
        "Rotate a credential",
    )
        .errors(&[Code::CredentialLimitReached, Code::CredentialNotLive, Code::InvalidRowHmac]);
}

/// Request for a credential.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
#[command(mut_arg("allowlist", |allow| allow.help(
        "Network or address to which the credential is restricted. Can be repeated"
    )))]
pub struct NewCredential {
    /// Networks to which the credential is restricted, in addition to the partner's allowlist.
    #[serde(default)]
    #[command(flatten)]
    pub allowlist: Option<Allowlist>,
    /// What the credential may do; null or omitted: everything.
    #[serde(default)]
    #[command(flatten)]
    pub scopes: Option<ApiScopes>,
}

/// A new credential with its secret, which is shown once.
#[derive(Serialize, ToSchema)]
pub struct IssuedCredential {
    /// Public ID.
    pub credential_id: CredentialId,
    /// Value of the header `X-API-Key`.
    pub api_key: String,
    /// Value of the header `X-API-Secret` and key of the signatures. Shown once.
    #[serde(serialize_with = "serialize_secret")]
    #[schema(value_type = String)]
    pub api_secret: ApiSecret,
}

/// Only for the response that creates the credential.
fn serialize_secret<S: Serializer>(secret: &ApiSecret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

/// Query of a revocation.
#[derive(Debug, Default, Serialize, Deserialize, IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct RevocationQuery {
    /// Whether credentials rotated from it are revoked, too (the default), or kept.
    #[param(inline)]
    #[arg(long, value_parser = vouchsafe_domain::arguments::enum_parser::<DescendantPolicy>())]
    pub descendants: Option<DescendantPolicy>,
}

/// A credential without key and secret.
#[derive(Serialize, ToSchema)]
pub struct CredentialDetails {
    #[serde(flatten)]
    pub summary: CredentialSummary,
    /// Whether the credential is in force now. Ignores a suspension of the partner.
    live: bool,
}

impl CredentialDetails {
    #[must_use]
    pub fn of(credential: &Credential, now: OffsetDateTime) -> Self {
        Self {
            summary: CredentialSummary::from(credential),
            live: credential.is_live(now),
        }
    }
}
