//! Drifts: differences between our vouchers and the vendor's records, and their resolution by operators.

use serde::{Deserialize, Serialize};
use time::{Date, OffsetDateTime};

use super::{DriftKind, VoucherTerms};
use crate::ids::{DriftId, OrderId, PartnerId, VoucherId};

/// Resolution of a drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "utoipa", schema(
    as = DriftResolution,
    description = "Resolution of a drift: `pending` (none yet), `resolved` (settled) or `escalated` (raised with the vendor)."
))]
pub enum DriftResolution {
    Pending,
    Resolved,
    /// Raised with the vendor.
    Escalated,
}

impl DriftResolution {
    pub const ALL: [Self; 3] = [Self::Pending, Self::Resolved, Self::Escalated];

    /// Label in the API and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Resolved => "resolved",
            Self::Escalated => "escalated",
        }
    }
}

/// A difference between our voucher and the vendor's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// Stable as long as the terms of both sides are unchanged.
    pub drift_id: DriftId,
    pub vendor: String,
    /// In UTC.
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
#[derive(Debug, Clone, Default)]
pub struct DriftFilter {
    pub day: Option<Date>,
    pub vendor: Option<String>,
    pub kind: Option<DriftKind>,
    pub resolution: Option<DriftResolution>,
}

/// An operator's resolution of a drift.
#[derive(Debug, Clone)]
pub struct ResolveDriftRequest {
    pub drift_id: DriftId,
    pub resolution: DriftResolution,
    pub reason: String,
}
