//! `/reconciliation`: results of comparing vendor records with purchases, manual runs, and record files.
//!
//! A manual run is queued in the database; the next node that polls executes it. The response does not wait for it.

pub mod drifts;
mod records;
mod upload;

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use time::{Date, OffsetDateTime};
use utoipa::ToSchema;

use super::body::OptionalJson;
use crate::api::error::ApiError;
use crate::api::middleware::operator::{Operator, Role};
use crate::api::partner::reconciliation::not_found;
use vouchsafe_wire::partner::reconciliation::parse_date;
use crate::service::Service;
use vouchsafe_domain::reconciliation::result::{Reconciliation, ReconciliationResult, ReconciliationSummary, RecordsSource};
use vouchsafe_domain::vendor::AdapterKind;

pub(super) use upload::upload;

/// Reconciliation of a day.
#[derive(Serialize, ToSchema)]
#[schema(as = Reconciliation)]
pub struct DayBody {
    /// Day in UTC.
    #[schema(format = Date)]
    date: String,
    /// Totals of all vendors. An order with vouchers of two vendors counts for both.
    summary: ReconciliationSummary,
    /// Results by vendor.
    vendors: Vec<VendorBody>,
}

/// Reconciliation of a day with one vendor.
#[derive(Serialize, ToSchema)]
#[schema(as = VendorReconciliation)]
pub(super) struct VendorBody {
    /// Vendor ID.
    vendor: String,
    /// Counts of the last comparison; null before the first.
    #[schema(required)]
    summary: Option<ReconciliationSummary>,
    /// Number of the vendor's records of the day.
    #[schema(required, minimum = 0)]
    recorded: Option<i64>,
    /// Source of the records.
    #[schema(required)]
    source: Option<RecordsSource>,
    /// Time at which the records were requested. A day not over by then was compared up to that time.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    begun_at: Option<OffsetDateTime>,
    /// Time of the result.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    generated_at: Option<OffsetDateTime>,
    /// Failed attempts since the last result.
    #[schema(minimum = 0)]
    failed_attempts: i32,
    /// Reason of the last failure.
    #[schema(required)]
    last_word: Option<String>,
    /// Earliest time of the next attempt; null if none is due.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    next_at: Option<OffsetDateTime>,
}

/// Vendors to compare a day with.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Vendor ID. Default: all vendors with the adapter `http`.
    #[serde(default)]
    vendor: Option<String>,
}

/// `GET /reconciliation/{date}`.
pub(super) async fn get(
    service: web::Data<Service>,
    _operator: Operator,
    date: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let day = parse_date(&date)?;
    let reconciliations = service.store.reconciliations.list(day).await?;
    if reconciliations.is_empty() {
        return Err(not_found(day));
    }
    Ok(HttpResponse::Ok().json(DayBody::of(day, reconciliations)))
}

/// `POST /reconciliation/{date}/run`: queues a run and returns 202.
pub(super) async fn run(
    service: web::Data<Service>,
    operator: Operator,
    date: web::Path<String>,
    OptionalJson(request): OptionalJson<RunRequest>,
) -> Result<HttpResponse, ApiError> {
    let actor = operator.authorize(Role::Operator)?;
    let day = parse_started_day(&service, &date).await?.0;
    let vendors = resolve_http_vendors(&service, request).await?;
    service.store.reconciliations.request(day, vendors, actor).await?;
    let reconciliations = service.store.reconciliations.list(day).await?;
    Ok(HttpResponse::Accepted().json(DayBody::of(day, reconciliations)))
}

/// Parses a day that has begun by the database's clock; returns it with the database's time.
async fn parse_started_day(service: &Service, text: &str) -> Result<(Date, OffsetDateTime), ApiError> {
    let day = parse_date(text)?;
    let now = service.store.reconciliations.database_time().await?;
    if day > now.date() {
        return Err(ApiError::invalid_field("date", "this day has not begun in UTC"));
    }
    Ok((day, now))
}

/// All `http` vendors, or the named one if it is an `http` vendor.
async fn resolve_http_vendors(service: &Service, request: RunRequest) -> Result<Vec<String>, ApiError> {
    let all = service.store.vendors.list().await?.into_iter();
    let is_requested = |vendor_id: &str| request.vendor.as_ref().is_none_or(|only| only == vendor_id);
    let vendors: Vec<String> = all
        .filter(|vendor| vendor.adapter == AdapterKind::Http && is_requested(&vendor.vendor_id))
        .map(|vendor| vendor.vendor_id)
        .collect();
    if vendors.is_empty() {
        let message = "no such vendor with the adapter `http`; upload the records of other vendors";
        return Err(ApiError::invalid_field("vendor", message));
    }
    Ok(vendors)
}

impl DayBody {
    fn of(day: Date, reconciliations: Vec<Reconciliation>) -> Self {
        let vendors: Vec<VendorBody> = reconciliations.into_iter().map(VendorBody::from).collect();
        let summaries = vendors.iter().filter_map(|vendor| vendor.summary);
        Self {
            date: day.to_string(),
            summary: summaries.fold(ReconciliationSummary::default(), ReconciliationSummary::combine),
            vendors,
        }
    }
}

impl From<Reconciliation> for VendorBody {
    fn from(reconciliations: Reconciliation) -> Self {
        let compared = reconciliations.compared.as_ref();
        let timestamp = |pick: fn(&ReconciliationResult) -> OffsetDateTime| compared.map(pick);
        Self {
            summary: compared.map(|compared| compared.summary),
            recorded: compared.map(|compared| compared.recorded),
            source: compared.map(|compared| compared.source),
            begun_at: timestamp(|compared| compared.begun_at),
            generated_at: timestamp(|compared| compared.generated_at),
            vendor: reconciliations.vendor,
            failed_attempts: reconciliations.attempts,
            last_word: reconciliations.last_word,
            next_at: reconciliations.next_at,
        }
    }
}
