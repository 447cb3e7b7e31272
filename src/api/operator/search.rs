//! `GET /search`: objects by id, and orders by reference.

use actix_web::{HttpResponse, web};
use vouchsafe_domain::search::MAX_RESULTS;
use vouchsafe_wire::operator::search::{SearchQuery, SearchResults};

use crate::api::error::ApiError;
use crate::api::list_request::ValidatedQuery;
use crate::api::middleware::operator::Operator;
use crate::service::Service;

/// `GET /search`.
pub(super) async fn find(
    service: web::Data<Service>,
    _operator: Operator,
    ValidatedQuery(query): ValidatedQuery<SearchQuery>,
) -> Result<HttpResponse, ApiError> {
    let found = service
        .operator_store
        .search
        .find(query.q.into(), MAX_RESULTS + 1);
    Ok(HttpResponse::Ok().json(SearchResults::of(found.await?)))
}
