//! `GET /search`: objects by id, and orders by reference.

use actix_web::{HttpResponse, web};
use vouchsafe_domain::search::MAX_RESULTS;
use vouchsafe_wire::operator::search::{SearchQuery, SearchResults};

use crate::api::error::ApiResult;
use crate::api::list_request::ValidatedQuery;
use crate::service::Service;

/// `GET /search`.
pub(super) async fn find(
    service: web::Data<Service>,
    ValidatedQuery(query): ValidatedQuery<SearchQuery>,
) -> ApiResult {
    let found = service
        .operator_store
        .search
        .find(query.q.into(), MAX_RESULTS + 1);
    Ok(HttpResponse::Ok().json(SearchResults::of(found.await?)))
}
