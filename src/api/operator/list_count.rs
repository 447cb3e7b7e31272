//! Counts of lists: `count=true` adds to a page how many entries match the filters, up to 10,000.
//!
//! It calls the handler of the list a second time, so filters, errors and what the operator may see are those
//! of the list.

use actix_web::body::{BoxBody, to_bytes};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage as _, HttpResponse, ResponseError as _};
use serde::Deserialize;
use vouchsafe_wire::page::{CountParameter, ListPurpose, is_page_parameter};
use vouchsafe_wire::query;

use crate::api::error::ApiError;
use crate::api::list_request::PageQuery;

/// The response of a handler that only counts.
#[derive(Deserialize)]
struct Counted {
    count: Option<usize>,
}

/// Middleware of a list.
pub(super) async fn count_list(
    request: ServiceRequest,
    handler: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let (page, counted) = match parse(request.query_string()) {
        Ok(Some(queries)) => queries,
        Ok(None) => return handler.call(request).await,
        Err(error) => return Ok(request.into_response(error.error_response())),
    };
    let (request, _) = request.into_parts();
    let call = async |query: String, purpose| {
        request.extensions_mut().insert(PageQuery(query, purpose));
        handler.call(ServiceRequest::from_request(request.clone())).await
    };
    let Some(all) = counted else {
        return call(page, ListPurpose::Page).await;
    };
    let counted = call(all, ListPurpose::Count).await?;
    if counted.status() != StatusCode::OK {
        return Ok(counted);
    }
    let body = to_bytes(HttpResponse::from(counted).into_body()).await;
    let counted = body.ok().and_then(|body| serde_json::from_slice(&body).ok());
    let Some(Counted { count }) = counted else {
        return Ok(ServiceResponse::new(
            request,
            ApiError::unavailable().error_response(),
        ));
    };
    call(page, ListPurpose::CountedPage(count)).await
}

/// The query of the page, and that of all entries if their count is asked for; `None` without `count`.
fn parse(text: &str) -> Result<Option<(String, Option<String>)>, ApiError> {
    let pairs = query::split(text)?;
    let (count, mut others): (query::Pairs, query::Pairs) =
        pairs.into_iter().partition(|(name, _)| name == "count");
    if count.is_empty() {
        return Ok(None);
    }
    let CountParameter { count } = query::parse(&count)?;
    let format = |pairs: &query::Pairs| query::to_string(pairs).map_err(|_| ApiError::unavailable());
    let page = format(&others)?;
    others.retain(|(name, _)| !is_page_parameter(name));
    let all = (count == Some(true)).then(|| format(&others)).transpose()?;
    Ok(Some((page, all)))
}
