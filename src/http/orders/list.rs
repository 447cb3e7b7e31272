//! `GET /orders`: a partner's orders, newest first, as the same objects that each of them is read as.

use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_actors::domain::order::OrderStatus;

use super::body::OrderBody;
use super::broken;
use crate::errors::ApiError;
use crate::http::caller::Caller;
use crate::http::list::Page;
use crate::http::period;
use crate::service::Service;
use crate::store::OrderFilter;

/// What orders are listed by.
const FILTERS: [&str; 4] = ["status", "reference", "from", "to"];

/// `GET /orders`; filters: `status`, `reference`, `from`, `to`.
///
/// # Errors
/// `VALIDATION_FAILED` and `INVALID_CURSOR`.
pub async fn list(
    service: web::Data<Service>,
    caller: Caller,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &FILTERS)?;
    let orders = service
        .store
        .list_orders(caller.partner_id(), filter(&page)?, page.after()?, page.fetch())
        .await?;
    let bodies = orders.iter().map(OrderBody::of).collect::<Result<_, _>>();
    let bodies = bodies.map_err(|_| broken())?;
    Ok(page.answer(bodies, |body| body.order_id().to_string()))
}

/// The filters that partners and operators share.
///
/// # Errors
/// `VALIDATION_FAILED` for what cannot be read.
pub fn filter(page: &Page) -> Result<OrderFilter, ApiError> {
    Ok(OrderFilter {
        order_id: None,
        status: page.one_of("status", &OrderStatus::ALL, OrderStatus::as_str)?,
        reference: page.filter("reference").map(ToOwned::to_owned),
        period: period::of(page)?,
    })
}
