//! `/reconciliation`: allocations of a day, results of comparing vendor records with purchases, manual runs,
//! and record files.
//!
//! A manual run is queued in the database; the next node that polls executes it. The response does not wait
//! for it.

pub(super) mod drifts;
mod upload;

use actix_web::{HttpResponse, web};
use time::{Date, OffsetDateTime};
pub(super) use upload::upload;
use vouchsafe_wire::operator::reconciliation;
use vouchsafe_wire::operator::reconciliation::{ReconciliationBody, RunRequest};
use vouchsafe_wire::partner::reconciliation::parse_date;

use super::body::OptionalJson;
use crate::api::endpoint::Endpoint;
use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::{ListRequest, list_response};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::endpoint::bind;
use crate::api::partner::reconciliation::not_found;

pub(super) fn endpoints() -> [Endpoint; reconciliation::OPERATIONS.len()] {
    [
        bind(reconciliation::LIST_RECONCILIATIONS, list),
        bind(reconciliation::GET_RECONCILIATION, get),
        bind(reconciliation::RUN_RECONCILIATION, run),
        bind(reconciliation::UPLOAD_RECORDS, upload),
        bind(reconciliation::LIST_DRIFTS, drifts::list),
        bind(reconciliation::RESOLVE_DRIFT, drifts::resolve),
    ]
}

/// `GET /reconciliation`.
async fn list(service: web::Data<OperatorState>, ListRequest { page, .. }: ListRequest) -> ApiResult {
    let before: Option<String> = page.after()?;
    let before = before.map(|text| parse_date(&text)).transpose()?;
    let days = service
        .store
        .reconciliations
        .list_days(before, page.fetch_limit());
    list_response(&page, days.await?, |day| day.day)
}

/// `GET /reconciliation/{date}`.
async fn get(service: web::Data<OperatorState>, date: web::Path<String>) -> ApiResult {
    let day = parse_date(&date)?;
    let body = find_day(&service, day).await?;
    Ok(HttpResponse::Ok().json(body.ok_or_else(|| not_found(day))?))
}

/// The results and allocations of a day; `None` if there are neither.
async fn find_day(service: &OperatorState, day: Date) -> Result<Option<ReconciliationBody>, ApiError> {
    let reconciliations = service.store.reconciliations.list(day).await?;
    let allocations = service.store.reconciliations.find_allocations(day).await?;
    let is_empty = reconciliations.is_empty() && allocations.is_none();
    Ok((!is_empty).then(|| ReconciliationBody::of(day, reconciliations, allocations)))
}

/// `POST /reconciliation/{date}/run`: queues a run and returns 202.
async fn run(
    service: web::Data<OperatorState>,
    operator: Operator,
    date: web::Path<String>,
    OptionalJson(request): OptionalJson<RunRequest>,
) -> ApiResult {
    let actor = operator.audit_actor();
    let day = parse_started_day(&service, &date).await?.0;
    let vendors = resolve_vendors(&service, request).await?;
    service.store.reconciliations.request(day, vendors, actor).await?;
    let body = find_day(&service, day).await?;
    let body = body.unwrap_or_else(|| ReconciliationBody::of(day, Vec::new(), None));
    Ok(HttpResponse::Accepted().json(body))
}

/// Parses a day that has begun by the database's clock; returns it with the database's time.
async fn parse_started_day(service: &OperatorState, text: &str) -> Result<(Date, OffsetDateTime), ApiError> {
    let day = parse_date(text)?;
    let now = service.store.reconciliations.database_time().await?;
    if day > now.date() {
        return Err(ApiError::invalid_field("date", "this day has not begun in UTC"));
    }
    if service.store.reconciliations.is_archived(day).await? {
        let message = "the records of this month are archived; its days cannot be compared again";
        return Err(ApiError::invalid_field("date", message));
    }
    Ok((day, now))
}

/// All vendors whose adapter lists its sales, or the named one if it is one of them.
async fn resolve_vendors(service: &OperatorState, request: RunRequest) -> Result<Vec<String>, ApiError> {
    let all = service.store.vendors.list().await?.into_iter();
    let is_requested = |vendor_id: &str| request.vendor.as_ref().is_none_or(|only| only == vendor_id);
    let vendors: Vec<String> = all
        .filter(|vendor| vendor.adapter.has_records() && is_requested(&vendor.vendor_id))
        .map(|vendor| vendor.vendor_id)
        .collect();
    if vendors.is_empty() && request.vendor.is_some() {
        let message = "no such vendor, or its adapter lists no sales; upload the records of such a vendor";
        return Err(ApiError::invalid_field("vendor", message));
    }
    Ok(vendors)
}
