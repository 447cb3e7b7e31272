//! Credential without key and secret.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::api_scope::ApiScopes;
use vouchsafe_domain::ids::{CredentialId, PartnerId};

use super::credential::Credential;

/// A credential without key and secret, as operators and the audit log see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Credential)]
pub struct CredentialSummary {
    /// Public id.
    pub credential_id: CredentialId,
    /// Partner that owns the credential.
    pub partner_id: PartnerId,
    /// Networks that narrow the partner's allowlist; null applies the partner's allowlist alone.
    #[schema(required)]
    pub allowlist: Option<Allowlist>,
    /// What the credential may do; null is everything.
    #[schema(required)]
    pub scopes: Option<ApiScopes>,
    /// Start of validity.
    #[serde(with = "vouchsafe_domain::timestamp")]
    pub not_before: OffsetDateTime,
    /// End of validity, exclusive; null until revoked.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    pub not_after: Option<OffsetDateTime>,
    /// Time of revocation.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    pub revoked_at: Option<OffsetDateTime>,
    /// Credential that requested this one in a rotation; null if an operator issued it.
    #[schema(required)]
    pub rotated_from: Option<CredentialId>,
    /// Time of the last rotation that this credential requested.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    pub rotated_at: Option<OffsetDateTime>,
    /// Time of first use; recorded only for credentials from a rotation.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    pub first_used_at: Option<OffsetDateTime>,
}

impl From<&Credential> for CredentialSummary {
    fn from(credential: &Credential) -> Self {
        Self {
            credential_id: credential.credential_id,
            partner_id: credential.partner_id,
            allowlist: credential.allowlist.clone(),
            scopes: credential.scopes,
            not_before: credential.not_before,
            not_after: credential.not_after,
            revoked_at: credential.revoked_at,
            rotated_from: credential.rotated_from,
            rotated_at: credential.rotated_at,
            first_used_at: credential.first_used_at,
        }
    }
}
