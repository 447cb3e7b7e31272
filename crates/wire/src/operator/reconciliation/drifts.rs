//! Bodies of `/drifts`.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::ids::{DriftId, OrderId, PartnerId, VoucherId};
use vouchsafe_domain::money::{Currency, Money};
use vouchsafe_domain::product::ProductId;
use vouchsafe_domain::purchase::PurchaseKey;
use vouchsafe_domain::reconciliation::drift::{Drift, DriftDecision, DriftResolution};
use vouchsafe_domain::reconciliation::{DriftKind, VoucherTerms};

use crate::json;
use crate::operator::text::Reason;

/// A difference between a vendor's records and our purchases.
#[derive(Serialize, ToSchema)]
#[schema(as = Drift)]
pub struct DriftBody {
    /// Drift ID: stable as long as the values on both sides do not change.
    pub drift_id: DriftId,
    /// Day in UTC.
    #[schema(format = Date)]
    date: String,
    /// Vendor ID.
    vendor: String,
    /// Kind.
    kind: DriftKind,
    /// Names of the fields that differ.
    differences: Vec<&'static str>,
    /// Partner whose order the voucher was bought for; null without a purchase.
    #[schema(required)]
    partner_id: Option<PartnerId>,
    /// Order the voucher was bought for; null without a purchase.
    #[schema(required)]
    order_id: Option<OrderId>,
    /// Voucher ID in that order; null if the order does not have it.
    #[schema(required)]
    our_allocation: Option<VoucherId>,
    /// The vendor's reference of the voucher, never a code.
    vendor_record: String,
    /// Our voucher; null if we have none.
    #[schema(required)]
    ours: Option<DriftSide>,
    /// The vendor's record; null if it has none.
    #[schema(required)]
    theirs: Option<DriftSide>,
    /// Time at which the drift was detected.
    #[serde(with = "vouchsafe_domain::timestamp")]
    detected_at: OffsetDateTime,
    /// Resolution.
    resolution: DriftResolution,
    /// Reason of the resolution.
    #[schema(required)]
    reason: Option<String>,
    /// Time of the resolution.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    resolved_at: Option<OffsetDateTime>,
}

/// A voucher according to one side.
#[derive(Serialize, ToSchema)]
struct DriftSide {
    /// Purchase ID; null if the side does not state it.
    #[schema(required, value_type = Option<String>)]
    purchase_id: Option<PurchaseKey>,
    /// Product ID.
    product_id: ProductId,
    /// Face value in `currency`.
    denomination: Money,
    /// Currency of `denomination`.
    currency: Currency,
}

/// Resolution of a drift.
#[derive(Debug, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct ResolveRequest {
    /// `resolved`, or `escalated` to the vendor.
    #[serde(deserialize_with = "json::enum_value")]
    #[arg(
        long = "as",
        default_value = "resolved",
        value_parser = vouchsafe_domain::arguments::enum_parser::<DriftDecision>(),
        help = "New resolution"
    )]
    pub resolution: DriftDecision,
    /// Reason, written to the audit trail.
    #[arg(long)]
    pub reason: Reason,
}

impl From<Drift> for DriftBody {
    fn from(drift: Drift) -> Self {
        let sides = drift.ours.as_ref().zip(drift.theirs.as_ref());
        let (partner_id, order_id) = drift.order.unzip();
        Self {
            drift_id: drift.drift_id,
            date: drift.day.to_string(),
            vendor: drift.vendor,
            kind: drift.kind,
            differences: sides
                .map(|(ours, theirs)| ours.differences(theirs))
                .unwrap_or_default(),
            partner_id,
            order_id,
            our_allocation: drift.voucher_id,
            vendor_record: drift.reference,
            ours: drift.ours.map(DriftSide::from),
            theirs: drift.theirs.map(DriftSide::from),
            detected_at: drift.detected_at,
            resolution: drift.resolution,
            reason: drift.reason,
            resolved_at: drift.resolved_at,
        }
    }
}

impl From<VoucherTerms> for DriftSide {
    fn from(terms: VoucherTerms) -> Self {
        Self {
            purchase_id: terms.purchase,
            product_id: terms.product_id,
            denomination: terms.denomination,
            currency: terms.denomination.currency,
        }
    }
}
