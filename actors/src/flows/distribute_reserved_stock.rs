//! Distributes new stock to waiting orders, oldest first, before it reaches the shelf (contract §4).
//!
//! | step | on disk |
//! |---|---|
//! | (stock arrived while orders waited for its SKU) | its chunks are reserved under an id of their own: no shelf claims them |
//! | the oldest orders get what they need | vouchers issued, a record per order, concurrently |
//! | no order waits any more, or nothing is left | the rest is released: any shelf may claim it |
//!
//! The vouchers are read once per batch of orders and assigned in memory, the oldest order first. An order that changed meanwhile
//! is served with the next batch, and so is what failed. Only an order that the store rejects permanently is skipped, so that it
//! does not block the others forever.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use time::Date;
use tracing::error;
use vouchsafe_domain::ids::VoucherId;
use vouchsafe_domain::order::{FulfilmentSource, Order, StoredOrder};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::{Allocation, Expiry, StockVoucher};

use super::change::{CommitAttempt, commit_decision};
use super::fulfil_order::{first_valid, issue_transition};
use super::idempotent::FlowError;
use super::procure::ProcureError;
use crate::engine::Engine;
use crate::ports::vendors::{ReservedStock, Vendors};

/// Concurrent reads of orders; they share connections with the orders of partners.
const READ_CONCURRENCY: usize = 2;

/// Concurrent commits, which the lanes write in a few transactions.
const COMMIT_CONCURRENCY: usize = 64;

/// What a batch left of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DistributionProgress {
    /// Nothing: what no order needed was released to the shelf.
    Complete,
    HasMore,
}

/// Distributes a reservation to up to `limit` of the orders that wait for its SKU; if none is left behind them, releases the rest
/// to the shelf.
///
/// # Errors
/// [`ProcureError`]; the rest stays reserved, and the next poll retries.
pub async fn distribute_reserved_stock(
    engine: &Engine,
    vendors: &dyn Vendors,
    reserved: &ReservedStock,
    limit: usize,
) -> Result<DistributionProgress, ProcureError> {
    let sku = &reserved.sku;
    let waiting = vendors.list_orders_waiting_for(sku, limit).await?;
    let is_last_batch = waiting.len() < limit;
    let mut batch = Batch {
        vouchers: engine.store.claim_reserved(reserved.reservation_id).await?,
        is_exhausted: false,
    };
    let mut orders = stream::iter(waiting)
        .map(|(partner_id, order_id)| engine.store.load_order(partner_id, order_id))
        .buffered(READ_CONCURRENCY);
    let (mut served, today) = (Vec::new(), engine.clock.now().date());
    while let Some(stored) = orders.try_next().await? {
        let Some(stored) = stored else { continue };
        let allocations = batch.assign(&stored.order, sku, today);
        if !allocations.is_empty() {
            served.push((stored, allocations));
        }
        if batch.is_exhausted {
            break;
        }
    }
    drop(orders);
    let attempts: Vec<_> = stream::iter(served)
        .map(|(stored, allocations)| deliver(engine, stored, allocations))
        .buffer_unordered(COMMIT_CONCURRENCY)
        .collect()
        .await;
    let (mut has_delivered, mut is_complete) = (false, is_last_batch || batch.is_exhausted);
    for attempt in attempts {
        match attempt {
            Ok(CommitAttempt::Done) => has_delivered = true,
            Ok(CommitAttempt::Retry) => return Ok(DistributionProgress::HasMore),
            Err(FlowError::Poisoned) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // A batch of orders that the store rejects would be read again and again.
    is_complete |= !has_delivered;
    if !is_complete {
        return Ok(DistributionProgress::HasMore);
    }
    vendors.release_reservation(reserved.reservation_id).await?;
    engine.inventory.notify_restocked(sku, Expiry::PAST);
    Ok(DistributionProgress::Complete)
}

/// The vouchers of a reservation that no order of the batch was assigned, earliest expiry first.
struct Batch {
    vouchers: Vec<StockVoucher>,
    /// An order still waits: nothing is left, or nothing that is valid for long enough.
    is_exhausted: bool,
}

impl Batch {
    /// Assigns vouchers to the lines of an order that wait for the SKU.
    fn assign(&mut self, order: &Order, sku: &Sku, today: Date) -> Vec<Allocation> {
        let mut allocations = Vec::new();
        for (number, line) in (0_u16..).zip(&order.lines).filter(|_| !order.closed) {
            let needed = line.pending() as usize;
            if needed == 0 || line.sku() != *sku {
                continue;
            }
            let first = first_valid(&self.vouchers, line, today);
            let count = needed.min(self.vouchers.len() - first);
            self.is_exhausted |= count < needed;
            let taken = self.vouchers.drain(first..first + count);
            allocations.extend(
                taken.map(|voucher| Allocation::new(VoucherId::generate(), number, sku.clone(), voucher)),
            );
        }
        allocations
    }
}

/// Delivers the vouchers unless the order has changed.
async fn deliver(
    engine: &Engine,
    stored: StoredOrder,
    allocations: Vec<Allocation>,
) -> Result<CommitAttempt, FlowError> {
    let transition = issue_transition(engine, &stored.order, allocations, FulfilmentSource::Cache);
    let delivered = commit_decision(engine, &stored, transition, Vec::new()).await;
    if let Err(FlowError::Poisoned) = delivered {
        error!(order.id = %stored.order.order_id, "cannot deliver reserved stock to order; skipping it");
    }
    delivered
}
