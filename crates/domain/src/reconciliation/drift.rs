//! Drifts: differences between our vouchers and the vendor's records, and their resolution by operators.

use serde::{Deserialize, Serialize};
use time::{Date, OffsetDateTime};

use super::{DriftKind, VoucherTerms};
use crate::ids::{DriftId, OrderId, PartnerId, VoucherId};
use crate::labels::labels;

labels! {
    /// Resolution of a drift.
    pub enum DriftResolution: "lowercase",
        "Resolution of a drift: `pending` (none yet), `resolved` (settled) or `escalated` (raised with the vendor)." {
        Pending,
        Resolved,
        /// Raised with the vendor.
        Escalated,
    }
}

labels! {
    /// What an operator makes of a drift.
    pub enum DriftDecision: "lowercase",
        "New resolution of a drift: `resolved` (settled) or `escalated` (raised with the vendor)." {
        Resolved,
        /// Raised with the vendor.
        Escalated,
    }
}

impl From<DriftDecision> for DriftResolution {
    fn from(decision: DriftDecision) -> Self {
        match decision {
            DriftDecision::Resolved => Self::Resolved,
            DriftDecision::Escalated => Self::Escalated,
        }
    }
}

/// A difference between our voucher and the vendor's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// Stable as long as the terms of both sides are unchanged.
    pub drift_id: DriftId,
    pub vendor: String,
    /// Day in UTC.
    pub day: Date,
    /// The vendor's id of the voucher.
    pub reference: String,
    pub kind: DriftKind,
    /// The order that the voucher was bought for.
    pub order: Option<(PartnerId, OrderId)>,
    /// The voucher in that order.
    pub voucher_id: Option<VoucherId>,
    pub ours: Option<VoucherTerms>,
    pub theirs: Option<VoucherTerms>,
    pub detected_at: OffsetDateTime,
    pub resolution: DriftResolution,
    pub reason: Option<String>,
    pub resolved_at: Option<OffsetDateTime>,
}

/// Filter of drifts; `None` matches any.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct DriftFilter {
    /// Filter by day, in UTC.
    #[serde(rename = "date", default, with = "crate::iso_date::option")]
    #[param(inline, example = "2026-11-20")]
    #[arg(long = "date", value_name = "DATE", value_parser = crate::iso_date::parse_argument)]
    pub day: Option<Date>,
    /// Filter by vendor.
    #[param(value_type = Option<crate::text_schema::FilterText>, inline, example = "acme-cards")]
    #[arg(long)]
    pub vendor: Option<String>,
    /// Filter by kind.
    #[param(inline)]
    #[arg(long, value_parser = crate::arguments::enum_parser::<DriftKind>())]
    pub kind: Option<DriftKind>,
    /// Filter by resolution.
    #[param(inline)]
    #[arg(long, value_parser = crate::arguments::enum_parser::<DriftResolution>())]
    pub resolution: Option<DriftResolution>,
}

/// An operator's resolution of a drift.
#[derive(Debug, Clone)]
pub struct ResolveDriftRequest {
    pub drift_id: DriftId,
    pub resolution: DriftResolution,
    pub reason: String,
}
