//! Row of the `partners` table.

use sqlx::types::Json;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_domain::allowlist::{Allowlist, InvalidAllowlist};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::limits::Limits;
use vouchsafe_domain::partner::Partner;
use vouchsafe_domain::partner::approval_rule::ApprovalRule;
use vouchsafe_domain::scope::Scope;

#[derive(sqlx::FromRow)]
pub(crate) struct PartnerRow {
    partner_id: PartnerId,
    name: String,
    allowlist: Vec<String>,
    limits: Json<Limits>,
    suspended: bool,
    approval_rule: Option<Json<ApprovalRule>>,
    catalogue: Option<Json<Scope>>,
    cancel_window_s: i32,
    certified_at: Option<OffsetDateTime>,
    agreement_signed_at: Option<OffsetDateTime>,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
}

impl TryFrom<PartnerRow> for Partner {
    type Error = sqlx::Error;

    fn try_from(row: PartnerRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            partner_id: row.partner_id,
            name: row.name,
            allowlist: read_allowlist(row.allowlist)?,
            limits: row.limits.0,
            suspended: row.suspended,
            approval_rule: row.approval_rule.map(|rule| rule.0),
            catalogue: row.catalogue.map(|scope| scope.0),
            cancel_window_s: row.cancel_window_s.cast_unsigned(),
            certified_at: row.certified_at,
            agreement_signed_at: row.agreement_signed_at,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

pub(crate) fn read_allowlist(entries: Vec<String>) -> Result<Allowlist, sqlx::Error> {
    entries.try_into().map_err(|error| {
        sqlx::Error::Decode(Box::<dyn std::error::Error + Send + Sync>::from(InvalidEntry(
            error,
        )))
    })
}

#[derive(Debug, thiserror::Error)]
#[error("invalid allowlist in the database: {0}")]
struct InvalidEntry(InvalidAllowlist);
