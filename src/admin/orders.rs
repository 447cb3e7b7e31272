//! `/orders`: every partner's orders, as their partners see them. Never a code.

mod decide;
mod fulfil;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_actors::domain::ids::PartnerId;
use vouchsafe_actors::domain::order::Order;

pub(super) use self::decide::{approve, cancel, reject};
pub(super) use self::fulfil::{FulfilRequest, Fulfilled, fulfil};
use super::operator::Operator;
use crate::errors::{ApiError, Code};
use crate::http::orders::{filter, not_found, parse_id};
use crate::http::{OrderBody, Page};
use crate::service::Service;
use crate::store::OrderFilter;

/// What orders are searched by.
const FILTERS: [&str; 6] = ["partner_id", "order_id", "status", "reference", "from", "to"];

/// An order, and whose it is.
#[derive(Serialize, ToSchema)]
pub(super) struct OrderOfPartner<'a> {
    partner_id: PartnerId,
    #[serde(flatten)]
    order: OrderBody<'a>,
}

impl<'a> OrderOfPartner<'a> {
    fn of(order: &'a Order) -> Result<Self, ApiError> {
        let body = OrderBody::of(order).map_err(|_| {
            tracing::error!(order.id = %order.order_id, "an order's metadata is no JSON");
            ApiError::new(Code::InternalError, "an order could not be written")
        })?;
        Ok(Self {
            partner_id: order.partner_id,
            order: body,
        })
    }
}

/// `GET /orders`; filters: `partner_id`, `order_id`, `status`, `reference`, `from`, `to`.
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &FILTERS)?;
    let wanted = OrderFilter {
        order_id: page.parsed("order_id")?,
        ..filter(&page)?
    };
    let (before, limit) = (page.after()?, page.fetch());
    let orders = match page.parsed::<PartnerId>("partner_id")? {
        Some(partner_id) => {
            service
                .store
                .list_orders(partner_id, wanted, before, limit)
                .await?
        }
        None => service.store.search_orders(wanted, before, limit).await?,
    };
    let bodies = orders.iter().map(OrderOfPartner::of).collect::<Result<_, _>>()?;
    Ok(page.answer(bodies, |body| body.order.order_id().to_string()))
}

/// `GET /orders/{order_id}`.
pub(super) async fn get(
    service: web::Data<Service>,
    _operator: Operator,
    order_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let order = find(&service, &order_id).await?;
    Ok(HttpResponse::Ok().json(OrderOfPartner::of(&order)?))
}

/// The order with this id, whosever it is.
async fn find(service: &Service, order_id: &str) -> Result<Order, ApiError> {
    let order_id = parse_id(order_id)?;
    let wanted = OrderFilter {
        order_id: Some(order_id),
        ..OrderFilter::default()
    };
    let mut found = service.store.search_orders(wanted, None, 1).await?;
    found.pop().ok_or_else(|| not_found(order_id))
}
