//! Erasure of personal data: bodies of `/erase` of orders, payouts and partners.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vouchsafe_domain::ids::OrderId;

use super::text::Reason;

/// Why personal data is erased.
#[derive(Debug, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct ErasureRequest {
    /// Reason, written to the audit trail, which keeps it: do not repeat personal data.
    #[arg(long)]
    pub reason: Reason,
}

/// Why the personal data of a partner is erased, and where to continue.
#[derive(Debug, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct PartnerErasureRequest {
    /// Reason, written to the audit trail, which keeps it: do not repeat personal data.
    #[arg(long)]
    pub reason: Reason,
    /// `next_after` of the previous call.
    #[serde(default)]
    #[arg(skip)]
    pub after: Option<OrderId>,
}

/// Objects whose personal data this call has erased.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ErasureReport {
    pub orders: u64,
    pub payouts: u64,
    /// Where to continue, if orders of the partner are left: repeat the call with it as `after`.
    #[schema(required)]
    pub next_after: Option<OrderId>,
}
