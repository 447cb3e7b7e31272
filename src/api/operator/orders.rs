//! `/orders`: orders of all partners, with the fields that the partner sees and without codes.

mod decide;
mod fulfil;

use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_domain::order::Order;

pub(super) use self::decide::{approve, cancel, reject};
pub(super) use self::fulfil::fulfil;
use vouchsafe_domain::order::filter::OrderFilter;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::orders::{FILTERS, OrderOfPartner, parse_filter};
use vouchsafe_wire::page::PageRequest;

use crate::api::error::ApiError;
use crate::api::middleware::operator::Operator;
use crate::api::partner::orders::{not_found, parse_id};
use crate::service::Service;

/// `GET /orders`; filters: `partner_id`, `order_id`, `status`, `reference`, `from`, `to`.
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = PageRequest::parse(request.path(), request.query_string(), &FILTERS)?;
    let (filter, partner_id) = parse_filter(&page)?;
    let (before, limit) = (page.after()?, page.fetch_limit());
    let orders = match partner_id {
        Some(partner_id) => {
            service
                .store
                .orders
                .list(partner_id, filter, before, limit)
                .await?
        }
        None => service.store.orders.search(filter, before, limit).await?,
    };
    let bodies = orders.iter().map(order_body).collect::<Result<_, _>>()?;
    Ok(HttpResponse::Ok().json(page.body(bodies, |body| body.order_id().to_string())))
}

/// `GET /orders/{order_id}`.
pub(super) async fn get(
    service: web::Data<Service>,
    _operator: Operator,
    order_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let order = find(&service, &order_id).await?;
    Ok(HttpResponse::Ok().json(order_body(&order)?))
}

async fn find(service: &Service, order_id: &str) -> Result<Order, ApiError> {
    let order_id = parse_id(order_id)?;
    let filter = OrderFilter {
        order_id: Some(order_id),
        ..OrderFilter::default()
    };
    let mut found = service.store.orders.search(filter, None, 1).await?;
    found.pop().ok_or_else(|| not_found(order_id))
}

fn order_body(order: &Order) -> Result<OrderOfPartner<'_>, ApiError> {
    OrderOfPartner::of(order).map_err(|_| {
        tracing::error!(order.id = %order.order_id, "invalid JSON in order metadata");
        ApiError::new(Code::InternalError, "cannot serialize the order")
    })
}
