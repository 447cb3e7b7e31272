//! Distributes new stock to waiting orders, oldest first, before it reaches the shelf (contract §4).
//!
//! | step | on disk |
//! |---|---|
//! | (stock arrived while orders waited for its SKU) | its chunks are reserved under an id of their own: no shelf claims them |
//! | the oldest order gets what it needs, then the next | vouchers issued |
//! | no order waits any more, or nothing is left | the rest is released: any shelf may claim it |
//!
//! A step that fails is retried at the next poll, and no other order is served before. Only an order that the store rejects
//! permanently is skipped, so that it does not block the others forever.

use tracing::error;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::order::{FulfilmentSource, Order};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::Expiry;

use super::change::log_unavailable;
use super::fulfil_order::deliver_reserved;
use super::idempotent::FlowError;
use super::procure::ProcureError;
use crate::engine::Engine;
use crate::ports::vendors::{ReservedDelivery, ReservedStock, Vendors};

/// Distributes a reservation to the orders that wait for its SKU and releases the rest to the shelf.
///
/// # Errors
/// [`ProcureError`]; the stock stays reserved, and the next poll retries.
pub async fn distribute_reserved_stock(
    engine: &Engine,
    vendors: &dyn Vendors,
    reserved: ReservedStock,
) -> Result<(), ProcureError> {
    let mut after = None;
    while let Some((partner_id, order_id)) = vendors.find_oldest_waiting_order(&reserved.sku, after).await? {
        match serve(engine, &reserved, partner_id, order_id).await {
            // Nothing is left, or nothing that is valid for long enough.
            Ok(ServeResult {
                is_still_waiting: true,
            }) => break,
            Ok(ServeResult {
                is_still_waiting: false,
            }) => {}
            Err(FlowError::Poisoned) => {
                error!(order.id = %order_id, sku = %reserved.sku, "cannot deliver reserved stock to order; skipping it");
            }
            Err(error) => return Err(error.into()),
        }
        after = Some(order_id);
    }
    vendors.release_reservation(reserved.reservation_id).await?;
    engine.inventory.notify_restocked(&reserved.sku, Expiry::PAST);
    Ok(())
}

/// The result of serving an order.
struct ServeResult {
    /// Whether the order still waits for the SKU.
    is_still_waiting: bool,
}

/// Delivers reserved stock to an order, line by line.
async fn serve(
    engine: &Engine,
    reserved: &ReservedStock,
    partner_id: PartnerId,
    order_id: OrderId,
) -> Result<ServeResult, FlowError> {
    let stored = engine.store.load_order(partner_id, order_id).await;
    let mut order = stored
        .map_err(|error| log_unavailable(&error))?
        .map(|stored| stored.order);
    let lines = order.as_ref().map(|order| order.lines.len()).unwrap_or_default();
    for line in 0..u16::try_from(lines).unwrap_or(u16::MAX) {
        if is_waiting_for(order.as_ref(), line, &reserved.sku) {
            let delivery = ReservedDelivery {
                reservation_id: reserved.reservation_id,
                source: FulfilmentSource::Cache,
                partner_id,
                order_id,
                line,
            };
            order = deliver_reserved(engine, delivery).await?;
        }
    }
    let is_still_waiting = |line| is_waiting_for(order.as_ref(), line, &reserved.sku);
    Ok(ServeResult {
        is_still_waiting: (0..u16::MAX).take(lines).any(is_still_waiting),
    })
}

fn is_waiting_for(order: Option<&Order>, line: u16, sku: &Sku) -> bool {
    let order = order.filter(|order| !order.closed);
    let line = order.and_then(|order| order.lines.get(usize::from(line)));
    line.is_some_and(|line| line.pending() > 0 && line.sku() == *sku)
}
