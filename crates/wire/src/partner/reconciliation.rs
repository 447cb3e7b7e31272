//! The operation and response body of `GET /reconciliation/{date}`, and the date in its path.

use serde::Serialize;
use time::{Date, OffsetDateTime};
use utoipa::ToSchema;
use vouchsafe_domain::api_scope::ApiScope;
use vouchsafe_domain::bounds::List;
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::iso_date;
use vouchsafe_domain::product::ProductId;
use vouchsafe_domain::reconciliation::drift::{Drift, DriftResolution};
use vouchsafe_domain::reconciliation::partner_day::PartnerDay;
use vouchsafe_domain::reconciliation::result::ReconciliationSummary;

use crate::error_body::InvalidRequest;
use crate::error_code::Code;
use crate::operation::operations;
use crate::partner::operation::{Operation, get};

operations! {
    ApiScope;
    GET_RECONCILIATION: Operation<(), PartnerReconciliation> =
        get("/reconciliation/{date}", ApiScope::Read, "getReconciliation", "Get the reconciliation of a day (planned)")
            .errors(&[Code::ReconciliationNotFound, Code::ValidationFailed]);
}

/// Maximum drifts in a response. The spec defines no pagination here; `summary` has the total.
pub const MAX_DRIFTS: usize = 1_000;

type PartnerDrifts = List<PartnerDrift, 0, MAX_DRIFTS>;

/// Reconciliation of one day of your orders.
#[derive(Serialize, ToSchema)]
pub struct PartnerReconciliation {
    /// Day (UTC).
    #[schema(format = Date)]
    date: String,
    /// Totals of the day.
    summary: ReconciliationSummary,
    /// Differences between our allocations and the vendors' records: the first 1,000.
    #[schema(value_type = PartnerDrifts)]
    drifts: Vec<PartnerDrift>,
    /// When the reconciliation ran.
    #[serde(with = "vouchsafe_domain::timestamp")]
    generated_at: OffsetDateTime,
}

/// A difference between our allocations and a vendor's records.
#[derive(Serialize, ToSchema)]
struct PartnerDrift {
    /// Order that the voucher was bought for.
    order_id: OrderId,
    /// Vendor of the voucher.
    vendor: String,
    /// Product of the voucher.
    product_id: ProductId,
    /// Id of the allocated voucher, never a code. Empty if the order has none.
    our_allocation: String,
    /// The vendor's reference of the voucher, never a code. Empty if the vendor has no record.
    vendor_record: String,
    /// When the drift was detected.
    #[serde(with = "vouchsafe_domain::timestamp")]
    detected_at: OffsetDateTime,
    /// Resolution of the drift.
    resolution: DriftResolution,
}

/// Parses the date of a path.
///
/// # Errors
/// `VALIDATION_FAILED`.
pub fn parse_date(text: &str) -> Result<Date, InvalidRequest> {
    iso_date::parse_date(text)
        .ok_or_else(|| InvalidRequest::field("date", "expected a date in the form YYYY-MM-DD"))
}

impl PartnerReconciliation {
    /// A partner's part of the reconciliation of a day.
    #[must_use]
    pub fn of(day: Date, found: PartnerDay) -> Self {
        let drifts = found.drifts.into_iter().filter_map(PartnerDrift::of);
        Self {
            date: day.to_string(),
            summary: found.summary,
            drifts: drifts.collect(),
            generated_at: found.generated_at,
        }
    }
}

impl PartnerDrift {
    /// `None` for a drift without an order, which the query does not return.
    fn of(drift: Drift) -> Option<Self> {
        let (_, order_id) = drift.order?;
        let vendor_record = drift.theirs.as_ref().map(|_| drift.reference);
        let terms = drift.ours.or(drift.theirs)?;
        Some(Self {
            order_id,
            vendor: drift.vendor,
            product_id: terms.product_id,
            our_allocation: drift.voucher_id.map(|id| id.to_string()).unwrap_or_default(),
            vendor_record: vendor_record.unwrap_or_default(),
            detected_at: drift.detected_at,
            resolution: drift.resolution,
        })
    }
}
