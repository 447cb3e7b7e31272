//! `GET /reconciliation/{date}`: reconciliation of a partner's vouchers with the vendors' records (preview).
//!
//! The route and its documentation exist only if the operator enables the preview. A partner sees only vouchers that were
//! bought for its own orders, and references instead of codes.

use actix_web::guard::GuardContext;
use actix_web::{HttpResponse, web};
use serde::Serialize;
use time::{Date, OffsetDateTime};
use utoipa::ToSchema;
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::product::ProductId;

use crate::api::error::ApiError;
use crate::api::middleware::authentication::AuthenticatedCaller;
use crate::api::routing::resource;
use crate::service::Service;
use crate::settings::Preview;
use vouchsafe_store::PartnerDay;
use vouchsafe_domain::reconciliation::drift::{Drift, DriftResolution};
use vouchsafe_domain::reconciliation::result::ReconciliationSummary;
use vouchsafe_domain::iso_date;
use vouchsafe_wire::error_code::Code;

/// Maximum drifts in a response. The spec defines no pagination here; `summary` has the total.
const MAX_DRIFTS: usize = 1_000;

/// Reconciliation of one day of your orders.
#[derive(Serialize, ToSchema)]
#[schema(as = PartnerReconciliation)]
pub struct ReconciledDayBody {
    /// Day (UTC).
    #[schema(format = Date)]
    date: String,
    /// Totals of the day.
    summary: ReconciliationSummary,
    /// Differences between our allocations and the vendors' records: the first 1,000.
    #[schema(max_items = 1_000)]
    drifts: Vec<DriftBody>,
    /// When the reconciliation ran.
    #[serde(with = "vouchsafe_domain::timestamp")]
    generated_at: OffsetDateTime,
}

/// A difference between our allocations and a vendor's records.
#[derive(Serialize, ToSchema)]
#[schema(as = PartnerDrift)]
pub(super) struct DriftBody {
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

/// Registers the route; its guard hides it while the preview is off.
pub(super) fn preview_route(config: &mut web::ServiceConfig) {
    let route = resource("/reconciliation/{date}", "GET").guard(is_preview_on);
    config.service(route.route(web::get().to(get)));
}

fn is_preview_on(request: &GuardContext<'_>) -> bool {
    let service = request.app_data::<web::Data<Service>>();
    service.is_some_and(|service| service.reconciliation_preview == Preview::On)
}

/// `GET /reconciliation/{date}`.
///
/// # Errors
/// `VALIDATION_FAILED` for a malformed date, `RECONCILIATION_NOT_FOUND`.
async fn get(
    service: web::Data<Service>,
    caller: AuthenticatedCaller,
    date: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let day = parse_date(&date)?;
    let found = service
        .store
        .reconciliations
        .find_partner_day(caller.partner_id(), day, MAX_DRIFTS)
        .await?;
    let found = found.ok_or_else(|| not_found(day))?;
    Ok(HttpResponse::Ok().json(ReconciledDayBody::of(day, found)))
}

/// Parses the date of a path.
///
/// # Errors
/// `VALIDATION_FAILED`.
pub fn parse_date(text: &str) -> Result<Date, ApiError> {
    iso_date::parse_date(text)
        .ok_or_else(|| ApiError::invalid_field("date", "expected a date in the form YYYY-MM-DD"))
}

/// The error for a day without a reconciliation.
#[must_use]
pub fn not_found(day: Date) -> ApiError {
    let message = format!("{day} is not reconciled yet; retry some hours after the end of the day (UTC)");
    ApiError::new(Code::ReconciliationNotFound, message)
}

impl ReconciledDayBody {
    fn of(day: Date, found: PartnerDay) -> Self {
        let drifts = found.drifts.into_iter().filter_map(DriftBody::of);
        Self {
            date: day.to_string(),
            summary: found.summary,
            drifts: drifts.collect(),
            generated_at: found.generated_at,
        }
    }
}

impl DriftBody {
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
