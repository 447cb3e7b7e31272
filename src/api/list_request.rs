//! Extractors of query parameters: a page of a list with its filter, and other queries.
//!
//! The type of the filter defines the known parameters, the errors and the documentation.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, HttpResponse};
use serde::Serialize;
use serde::de::DeserializeOwned;
use time::OffsetDateTime;
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::order::Order;
use vouchsafe_domain::order::filter::OrderFilter;
use vouchsafe_store::StoreError;
use vouchsafe_wire::filter::{ListFilter, NoFilter};
use vouchsafe_wire::page::{ListPurpose, PageEntries, PageRequest};
use vouchsafe_wire::query;

use super::error::{ApiError, ApiResult};

/// Query of the page and its purpose, in the extensions of a request that reads a list more than once.
pub(super) struct PageQuery(pub(super) String, pub(super) ListPurpose);

/// Extractor: the requested page of a list, and its filter.
#[derive(Debug)]
pub(super) struct ListRequest<F = NoFilter> {
    pub(super) page: PageRequest,
    pub(super) filter: F,
}

impl<F: ListFilter> FromRequest for ListRequest<F> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let extensions = request.extensions();
        let (query, purpose) = match extensions.get() {
            Some(PageQuery(query, purpose)) => (query.as_str(), *purpose),
            None => (request.query_string(), ListPurpose::Page),
        };
        let parsed = PageRequest::parse(request.path(), query).map(|(page, filter)| Self {
            page: page.with_purpose(purpose),
            filter,
        });
        ready(parsed.map_err(ApiError::from))
    }
}

/// The response with up to [`PageRequest::fetch_limit`] entries. The key of the last one is the cursor of the
/// next page.
pub(super) fn list_response<T: Serialize, K: ToString>(
    page: &PageRequest,
    entries: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> ApiResult {
    let body = page.body(entries.into_iter().collect(), |entry| key(entry).to_string())?;
    Ok(HttpResponse::Ok().json(body))
}

/// # Errors
/// `VALIDATION_FAILED` for a filter that no index carries without a period.
pub(super) fn check_bounded(filter: &OrderFilter, now: OffsetDateTime) -> Result<(), ApiError> {
    match filter.unbounded(now) {
        Some((parameter, message)) => Err(ApiError::invalid_field(parameter, message)),
        None => Ok(()),
    }
}

/// The response with orders, which may have 1,000 vouchers each.
pub(super) async fn list_orders(
    page: &PageRequest,
    filter: &OrderFilter,
    now: OffsetDateTime,
    search: impl AsyncFn(Option<OrderId>, usize) -> Result<Vec<Order>, StoreError>,
    push: impl Fn(&mut PageEntries, &Order) -> Result<bool, ApiError>,
) -> ApiResult {
    check_bounded(filter, now)?;
    let fetch = async |before, step| Ok(search(before, step).await?);
    let body = page.body_in_steps(fetch, push, |order| order.order_id);
    Ok(HttpResponse::Ok().json(body.await?))
}

/// The page of a list that is complete in memory, sorted by its key.
pub(super) fn sorted_list_response<T: Serialize>(
    page: &PageRequest,
    entries: Vec<T>,
    key: impl Fn(&T) -> String,
) -> ApiResult {
    let after: Option<String> = page.after()?;
    let rest = entries
        .into_iter()
        .filter(|entry| after.as_ref().is_none_or(|after| key(entry) > *after));
    let entries: Vec<T> = rest.take(page.fetch_limit()).collect();
    list_response(page, entries, key)
}

/// Extractor: the parameters of a query.
#[derive(Debug)]
pub(super) struct ValidatedQuery<Q>(pub(super) Q);

impl<Q: Serialize + DeserializeOwned + Default> FromRequest for ValidatedQuery<Q> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(parse_query(request).map(Self))
    }
}

/// Parses the query of a request whose other parts are checked first.
pub(super) fn parse_query<Q: Serialize + DeserializeOwned + Default>(
    request: &HttpRequest,
) -> Result<Q, ApiError> {
    Ok(query::parse(&query::split(request.query_string())?)?)
}
