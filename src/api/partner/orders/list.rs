//! `GET /orders`: list of a partner's orders, newest first, in the representation of `GET /orders/{order_id}`.

use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_wire::page::PageRequest;
use vouchsafe_wire::partner::orders::body::OrderBody;
use vouchsafe_wire::partner::orders::filter::{FILTERS, parse_filter};

use super::serialization_error;
use crate::api::error::ApiError;
use crate::api::middleware::authentication::AuthenticatedCaller;
use crate::service::Service;

/// `GET /orders`; filters: `status`, `reference`, `from`, `to`.
///
/// # Errors
/// `VALIDATION_FAILED` and `INVALID_CURSOR`.
pub async fn list(
    service: web::Data<Service>,
    caller: AuthenticatedCaller,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = PageRequest::parse(request.path(), request.query_string(), &FILTERS)?;
    let orders = service
        .store
        .orders
        .list(
            caller.partner_id(),
            parse_filter(&page)?,
            page.after()?,
            page.fetch_limit(),
        )
        .await?;
    let bodies = orders.iter().map(OrderBody::of).collect::<Result<_, _>>();
    let bodies = bodies.map_err(|_| serialization_error())?;
    Ok(HttpResponse::Ok().json(page.body(bodies, |body| body.order_id().to_string())))
}
