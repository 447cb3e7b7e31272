//! `/orders`: orders of all partners, with the fields that the partner sees and without codes.

mod decide;
mod events;
mod fulfil;

use actix_web::{HttpResponse, web};
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::order::Order;
use vouchsafe_domain::order::filter::OrderSearch;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::orders;
use vouchsafe_wire::operator::orders::OrderOfPartner;
use vouchsafe_wire::page::PageEntries;

pub(super) use self::decide::{OrderApproval, approve, cancel, reject};
pub(super) use self::events::list_events;
pub(super) use self::fulfil::{Fulfilment, fulfil};
use crate::api::endpoint::Endpoint;
use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::{ListRequest, check_bounded, list_orders};
use crate::api::operator::OperatorState;
use crate::api::operator::body::Json;
use crate::api::operator::endpoint::bind;
use crate::api::operator::erasure::{self, ErasureCall};
use crate::api::operator::reports::Reports;
use crate::api::partner::orders::not_found;
use crate::api::path_id::Id;

pub(super) fn endpoints() -> [Endpoint; orders::OPERATIONS.len()] {
    [
        bind(orders::SEARCH_ORDERS, list),
        bind(orders::GET_ORDER, get),
        bind(orders::LIST_ORDER_EVENTS, list_events),
        bind(orders::APPROVE_ORDER, approve),
        bind(orders::REJECT_ORDER, reject),
        bind(orders::CANCEL_ORDER, cancel),
        bind(orders::ERASE_ORDER, erase),
        bind(orders::FULFIL_ORDER, fulfil),
    ]
}

/// `GET /orders`.
async fn list(reports: Reports, ListRequest { page, filter }: ListRequest<OrderSearch>) -> ApiResult {
    let push = |page: &mut PageEntries, order: &Order| Ok(page.push(&order_body(order)?)?);
    if let Some(limit) = page.count_limit() {
        check_bounded(&filter.filter, reports.now())?;
        let count = reports.read(async |store| store.orders.count(filter.clone(), limit).await);
        return Ok(HttpResponse::Ok().json(page.body_of_count(count.await?)));
    }
    let search = async |before, step| {
        let orders = reports.read(async |store| store.orders.search(filter.clone(), before, step).await);
        orders.await
    };
    list_orders(&page, &filter.filter, reports.now(), search, push).await
}

/// `POST /orders/{order_id}/erase`.
async fn erase((service, operator, order_id, Json(request)): ErasureCall<OrderId>) -> ApiResult {
    let actor = operator.audit_actor();
    let order = find(&service, &order_id).await?;
    let erasures = &service.store.erasures;
    let erased = erasures.erase_order(order.partner_id, order.order_id, request.reason.into(), actor);
    let open = "the order is open: it can be erased once it is closed";
    erasure::to_response(erased.await?, open, || not_found(order.order_id))
}

/// `GET /orders/{order_id}`.
async fn get(service: web::Data<OperatorState>, order_id: Id<OrderId>) -> ApiResult {
    let order = find(&service, &order_id).await?;
    Ok(HttpResponse::Ok().json(order_body(&order)?))
}

async fn find(service: &OperatorState, order_id: &Id<OrderId>) -> Result<Order, ApiError> {
    find_by_id(service, order_id.parse()?).await
}

async fn find_by_id(service: &OperatorState, order_id: OrderId) -> Result<Order, ApiError> {
    let search = OrderSearch {
        order_id: Some(order_id),
        ..OrderSearch::default()
    };
    let mut found = service.store.orders.search(search, None, 1).await?;
    found.pop().ok_or_else(|| not_found(order_id))
}

fn order_body(order: &Order) -> Result<OrderOfPartner<'_>, ApiError> {
    OrderOfPartner::of(order).map_err(|_| {
        tracing::error!(order.id = %order.order_id, "invalid JSON in order metadata");
        ApiError::new(Code::InternalError, "cannot serialize the order")
    })
}
