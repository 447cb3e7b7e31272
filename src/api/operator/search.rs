//! `GET /search`: objects by id, and orders by reference or trace ID.

use actix_web::{HttpResponse, web};
use vouchsafe_domain::search::MAX_RESULTS;
use vouchsafe_wire::operator::search::{SearchQuery, SearchResults};

use crate::api::error::ApiResult;
use crate::api::list_request::ValidatedQuery;
use crate::api::operator::OperatorState;

/// `GET /search`.
pub(super) async fn find(
    service: web::Data<OperatorState>,
    ValidatedQuery(query): ValidatedQuery<SearchQuery>,
) -> ApiResult {
    let found = service.store.search.find(query.q.into(), MAX_RESULTS + 1);
    Ok(HttpResponse::Ok().json(SearchResults::of(found.await?)))
}
