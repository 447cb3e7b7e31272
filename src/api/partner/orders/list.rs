//! `GET /orders`: list of a partner's orders, newest first, in the representation of `GET /orders/{order_id}`.

use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_domain::order::OrderStatus;

use super::body::OrderBody;
use super::serialization_error;
use crate::api::error::ApiError;
use crate::api::middleware::authentication::AuthenticatedCaller;
use vouchsafe_wire::page::PageRequest;
use vouchsafe_wire::period;
use crate::service::Service;
use crate::store::OrderFilter;

const FILTERS: [&str; 4] = ["status", "reference", "from", "to"];

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

/// Parses the filters that partners and operators share.
///
/// # Errors
/// `VALIDATION_FAILED` for a value that does not parse.
pub fn parse_filter(page: &PageRequest) -> Result<OrderFilter, ApiError> {
    Ok(OrderFilter {
        order_id: None,
        status: page.enum_filter("status", &OrderStatus::ALL, OrderStatus::as_str)?,
        reference: page.filter("reference").map(ToOwned::to_owned),
        period: period::from_page(page)?,
    })
}
