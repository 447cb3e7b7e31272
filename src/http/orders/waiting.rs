//! `GET /orders/{order_id}` with `Prefer: wait=N`: an order that is under way is answered when its status changes.
//!
//! Rule: while it waits, a request holds nothing but its seat; the order is read anew when it goes on.

use vouchsafe_actors::domain::ids::OrderId;
use vouchsafe_actors::domain::order::{Order, OrderStatus};

use super::not_found;
use crate::errors::ApiError;
use crate::http::caller::Caller;
use crate::http::prefer::Wait;
use crate::service::Service;

/// The order as it is now, or as it is when it has changed or the wait is over; with the wait that was granted. Where
/// too many wait already, none is.
///
/// # Errors
/// `ORDER_NOT_FOUND`.
pub(super) async fn read(
    service: &Service,
    caller: &Caller,
    order_id: OrderId,
    wished: Option<Wait>,
) -> Result<(Order, Option<Wait>), ApiError> {
    let order = find(service, caller, order_id).await?;
    let Some(wait) = wished.filter(|_| is_under_way(order.status)) else {
        return Ok((order, wished));
    };
    let Some(seat) = service.engine.watch.seat(caller.credential_id, order_id) else {
        return Ok((order, None));
    };
    let changed = || async {
        let now = service.store.find_order_status(caller.partner_id(), order_id);
        Ok::<_, ApiError>(now.await? != Some(order.status))
    };
    seat.wait(wait.patience(), changed).await?;
    Ok((find(service, caller, order_id).await?, wished))
}

async fn find(service: &Service, caller: &Caller, order_id: OrderId) -> Result<Order, ApiError> {
    let found = service.node.find_order(caller.partner_id(), order_id).await?;
    found.ok_or_else(|| not_found(order_id))
}

/// Whether somebody would wait for it (contract §3).
const fn is_under_way(status: OrderStatus) -> bool {
    matches!(status, OrderStatus::Pending | OrderStatus::Processing)
}
