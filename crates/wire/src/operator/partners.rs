//! Bodies of `/partners`.

pub(super) mod patch;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::partner::Partner;

pub use self::patch::PartnerPatch;
use self::patch::{LimitsPatch, validate_limits};
use super::credentials::{CredentialBody, IssuedCredential};
use super::patch_field::deserialize_some_object;
use super::text::validate_name;
use crate::error_body::InvalidRequest;

/// A partner to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPartner {
    /// Display name.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// Networks from which the partner may call; an empty list denies all.
    allowlist: Allowlist,
    /// Rate limits that differ from the settings.
    #[serde(default, deserialize_with = "deserialize_some_object")]
    #[schema(nullable = false)]
    limits: Option<LimitsPatch>,
}

impl NewPartner {
    /// The partner with a new id.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn into_partner(self, now: OffsetDateTime) -> Result<Partner, InvalidRequest> {
        let mut partner = Partner::new(validate_name("name", &self.name)?, self.allowlist, now);
        self.limits.unwrap_or_default().apply(&mut partner.limits);
        partner.limits = validate_limits(partner.limits)?;
        Ok(partner)
    }
}

/// A new partner with its first credential; `null` in production.
#[derive(Serialize, ToSchema)]
#[schema(as = CreatedPartner)]
pub struct CreatedPartner<'a> {
    #[serde(flatten)]
    pub partner: &'a Partner,
    #[schema(required)]
    pub credential: Option<&'a IssuedCredential>,
}

/// `GET /partners/{partner_id}/credentials` lists the others.
pub const MAX_EMBEDDED_CREDENTIALS: usize = 25;

/// A partner with its newest credentials, without keys and secrets.
#[derive(Serialize, ToSchema)]
#[schema(as = PartnerWithCredentials)]
pub struct PartnerWithCredentials<'a> {
    #[serde(flatten)]
    pub partner: &'a Partner,
    pub credentials: Vec<CredentialBody>,
}
