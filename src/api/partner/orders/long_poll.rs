//! Long polling of an order: `GET /orders/{order_id}` with `Prefer: wait=N`, until its status changes or it
//! is closed.
//!
//! A waiting request holds only its subscription, which has limits of its own: no database connection and no
//! permit to be in flight. The order is read again after the wait.

use actix_web::HttpRequest;
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::order::{Order, OrderStatus};
use vouchsafe_wire::preference::WaitPreference;

use super::not_found;
use crate::api::error::ApiError;
use crate::api::middleware::authentication::AuthenticatedCaller;
use crate::api::middleware::response_delivery;
use crate::api::partner::PartnerState;
use crate::service::Service;

/// Reads the order, after waiting for a status change if it is in progress. Returns the order and the wait
/// that was granted, which is `None` if too many requests wait already.
pub(super) async fn read_order(
    service: &PartnerState,
    request: &HttpRequest,
    caller: &AuthenticatedCaller,
    order_id: OrderId,
    requested: Option<WaitPreference>,
) -> Result<(Order, Option<WaitPreference>), ApiError> {
    let order = find_order(service, caller, order_id).await?;
    let is_over = |wait: &WaitPreference, status, closed| match wait.until_closed {
        true => closed,
        false => status != order.status || !is_in_progress(status),
    };
    let Some(wait) = requested.filter(|wait| !is_over(wait, order.status, order.closed)) else {
        return Ok((order, requested));
    };
    let Some(subscription) = service
        .engine
        .long_polls
        .subscribe(caller.family_id, order_id.as_uuid())
    else {
        return Ok((order, None));
    };
    let has_changed = || async {
        let now = service.store.orders.find_status(caller.partner_id(), order_id);
        let now = now.await?;
        Ok::<_, ApiError>(now.is_none_or(|(status, closed)| is_over(&wait, status, closed)))
    };
    let change = subscription.wait(wait.duration(), has_changed);
    response_delivery::wait_without_permit(request, service, caller.family_id, change).await?;
    Ok((find_order(service, caller, order_id).await?, requested))
}

async fn find_order(
    service: &Service,
    caller: &AuthenticatedCaller,
    order_id: OrderId,
) -> Result<Order, ApiError> {
    let found = service.node.find_order(caller.partner_id(), order_id).await?;
    found.ok_or_else(|| not_found(order_id))
}

/// Whether the status may still change without a request of the partner (contract §3).
const fn is_in_progress(status: OrderStatus) -> bool {
    matches!(status, OrderStatus::Pending | OrderStatus::Processing)
}
