//! `/reconciliation/{date}`: what came of comparing the vouchers of a partner's orders with their vendors' books.
//!
//! Rule: it is planned, and may change. While the operator has not turned it on, there is no such route, in no document
//! either. A partner sees what was bought for its own orders, and references alone.

use actix_web::guard::GuardContext;
use actix_web::{HttpResponse, web};
use serde::Serialize;
use time::{Date, OffsetDateTime};
use utoipa::ToSchema;
use vouchsafe_actors::domain::ids::OrderId;
use vouchsafe_actors::domain::product::ProductId;

use super::caller::Caller;
use super::resource;
use crate::day;
use crate::errors::{ApiError, Code};
use crate::service::Service;
use crate::settings::Preview;
use crate::store::{Drift, PartnerDay, Resolution, Summary};

/// Most drifts of an answer: the spec gives the list no pages, and the counts say how many there are.
const MAX_DRIFTS: usize = 1_000;

/// A day of a partner's orders.
#[derive(Serialize, ToSchema)]
#[schema(as = PartnerReconciliation)]
pub(super) struct DayBody {
    /// Which day, in UTC.
    #[schema(format = Date)]
    date: String,
    /// What was counted.
    summary: Summary,
    /// Where both sides do not say the same: the first 1,000.
    #[schema(max_items = 1_000)]
    drifts: Vec<DriftBody>,
    /// When this was put together.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    generated_at: OffsetDateTime,
}

/// A place where both sides do not say the same.
#[derive(Serialize, ToSchema)]
#[schema(as = PartnerDrift)]
pub(super) struct DriftBody {
    /// The order that the voucher was bought for.
    order_id: OrderId,
    /// From which vendor.
    vendor: String,
    /// Which product.
    product_id: ProductId,
    /// The id of the voucher as the order holds it; empty where it holds none. Never a code.
    our_allocation: String,
    /// The vendor's reference of the voucher; empty where its books have none. Never a code.
    vendor_record: String,
    /// When it was found.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    detected_at: OffsetDateTime,
    /// What was said of it.
    resolution: Resolution,
}

/// The route, which is there where the preview is on.
pub(super) fn preview(config: &mut web::ServiceConfig) {
    let route = resource("/reconciliation/{date}", "GET").guard(is_on);
    config.service(route.route(web::get().to(get)));
}

fn is_on(request: &GuardContext<'_>) -> bool {
    let service = request.app_data::<web::Data<Service>>();
    service.is_some_and(|service| service.reconciliation_preview == Preview::On)
}

/// `GET /reconciliation/{date}`.
///
/// # Errors
/// `VALIDATION_FAILED` for what is no date, `RECONCILIATION_NOT_FOUND`.
async fn get(
    service: web::Data<Service>,
    caller: Caller,
    date: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let day = read_date(&date)?;
    let found = service
        .store
        .partner_day(caller.partner_id(), day, MAX_DRIFTS)
        .await?;
    let found = found.ok_or_else(|| not_found(day))?;
    Ok(HttpResponse::Ok().json(DayBody::of(day, found)))
}

/// The day that a path names.
///
/// # Errors
/// `VALIDATION_FAILED`.
pub fn read_date(text: &str) -> Result<Date, ApiError> {
    day::parse(text).ok_or_else(|| ApiError::invalid("date", "expected a date as YYYY-MM-DD"))
}

/// Nothing of the day was compared yet.
#[must_use]
pub fn not_found(day: Date) -> ApiError {
    let message = format!("nothing of {day} is reconciled yet");
    ApiError::new(Code::ReconciliationNotFound, message)
}

impl DayBody {
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
    /// A drift of an order; there is no other one here.
    fn of(drift: Drift) -> Option<Self> {
        let (_, order_id) = drift.order?;
        let vendor_record = drift.theirs.as_ref().map(|_| drift.reference);
        let said = drift.ours.or(drift.theirs)?;
        Some(Self {
            order_id,
            vendor: drift.vendor,
            product_id: said.product_id,
            our_allocation: drift.voucher_id.map(|id| id.to_string()).unwrap_or_default(),
            vendor_record: vendor_record.unwrap_or_default(),
            detected_at: drift.detected_at,
            resolution: drift.resolution,
        })
    }
}
