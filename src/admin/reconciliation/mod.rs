//! `/reconciliation`: what came of comparing the vendors' books with ours, doing it now, and books that come as a file.
//!
//! Rule: a run by hand is written down and done by whichever node looks first; the answer does not wait for it.

pub(super) mod drifts;
mod records;
mod upload;

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use time::{Date, OffsetDateTime};
use utoipa::ToSchema;

use super::body::JsonOrNothing;
use super::operator::{Operator, Role};
use crate::errors::ApiError;
use crate::http::reconciliation::{not_found, read_date};
use crate::service::Service;
use crate::store::{Compared, Reconciliation, Source, Summary};
use crate::vendor::AdapterKind;

pub(super) use upload::upload;

/// A day with all vendors.
#[derive(Serialize, ToSchema)]
#[schema(as = Reconciliation)]
pub(super) struct DayBody {
    /// Which day, in UTC.
    #[schema(format = Date)]
    date: String,
    /// The sums over the vendors: an order whose vouchers two vendors sold counts with both.
    summary: Summary,
    /// By vendor.
    vendors: Vec<VendorBody>,
}

/// A day with a vendor.
#[derive(Serialize, ToSchema)]
#[schema(as = VendorReconciliation)]
pub(super) struct VendorBody {
    /// Who.
    vendor: String,
    /// What was counted when it was last compared; null where it never was.
    #[schema(required)]
    summary: Option<Summary>,
    /// How many records the vendor's books have of the day.
    #[schema(required, minimum = 0)]
    recorded: Option<i64>,
    /// How the books came.
    #[schema(required)]
    source: Option<Source>,
    /// When the books were asked for. A day that was not over then was compared as far as it had come.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    begun_at: Option<OffsetDateTime>,
    /// When the result was written.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    generated_at: Option<OffsetDateTime>,
    /// Attempts that failed since.
    #[schema(minimum = 0)]
    failed_attempts: i32,
    /// Why the last one failed.
    #[schema(required)]
    last_word: Option<String>,
    /// Not before when it is tried next; null where nothing more is to be done.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    next_at: Option<OffsetDateTime>,
}

/// With whom a day is to be compared.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunRequest {
    /// With this vendor alone. Left out: with all that are asked over HTTP.
    #[serde(default)]
    vendor: Option<String>,
}

/// `GET /reconciliation/{date}`.
pub(super) async fn get(
    service: web::Data<Service>,
    _operator: Operator,
    date: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let day = read_date(&date)?;
    let found = service.store.reconciliations_of(day).await?;
    if found.is_empty() {
        return Err(not_found(day));
    }
    Ok(HttpResponse::Ok().json(DayBody::of(day, found)))
}

/// `POST /reconciliation/{date}/run`: 202, it is done as soon as may be.
pub(super) async fn run(
    service: web::Data<Service>,
    operator: Operator,
    date: web::Path<String>,
    JsonOrNothing(request): JsonOrNothing<RunRequest>,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Operator)?;
    let day = begun_day(&service, &date).await?.0;
    let vendors = vendors_of(&service, request).await?;
    service.store.want_reconciliation(day, vendors, by).await?;
    let found = service.store.reconciliations_of(day).await?;
    Ok(HttpResponse::Accepted().json(DayBody::of(day, found)))
}

/// A day that has begun where days are counted, and what time it is there.
async fn begun_day(service: &Service, text: &str) -> Result<(Date, OffsetDateTime), ApiError> {
    let day = read_date(text)?;
    let now = service.store.moment().await?;
    if day > now.date() {
        return Err(ApiError::invalid("date", "this day has not begun yet, in UTC"));
    }
    Ok((day, now))
}

/// Those that are asked over HTTP, or the one that is named, if it is.
async fn vendors_of(service: &Service, request: RunRequest) -> Result<Vec<String>, ApiError> {
    let all = service.store.list_vendors().await?.into_iter();
    let meant = |vendor_id: &str| request.vendor.as_ref().is_none_or(|only| only == vendor_id);
    let vendors: Vec<String> = all
        .filter(|vendor| vendor.adapter == AdapterKind::Http && meant(&vendor.vendor_id))
        .map(|vendor| vendor.vendor_id)
        .collect();
    if vendors.is_empty() {
        let message = "no such vendor is asked for its books over HTTP; those of others are uploaded";
        return Err(ApiError::invalid("vendor", message));
    }
    Ok(vendors)
}

impl DayBody {
    fn of(day: Date, found: Vec<Reconciliation>) -> Self {
        let vendors: Vec<VendorBody> = found.into_iter().map(VendorBody::from).collect();
        let summaries = vendors.iter().filter_map(|vendor| vendor.summary);
        Self {
            date: day.to_string(),
            summary: summaries.fold(Summary::default(), Summary::plus),
            vendors,
        }
    }
}

impl From<Reconciliation> for VendorBody {
    fn from(found: Reconciliation) -> Self {
        let compared = found.compared.as_ref();
        let of = |pick: fn(&Compared) -> OffsetDateTime| compared.map(pick);
        Self {
            summary: compared.map(|compared| compared.summary),
            recorded: compared.map(|compared| compared.recorded),
            source: compared.map(|compared| compared.source),
            begun_at: of(|compared| compared.begun_at),
            generated_at: of(|compared| compared.generated_at),
            vendor: found.vendor,
            failed_attempts: found.attempts,
            last_word: found.last_word,
            next_at: found.next_at,
        }
    }
}
