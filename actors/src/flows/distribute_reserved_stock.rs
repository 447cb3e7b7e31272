//! Distributes new stock to waiting orders, oldest first, before it reaches the shelf (contract §4).
//!
//! | step | on disk |
//! |---|---|
//! | (stock arrived while orders waited for its SKU) | its chunks are reserved under an id of their own: no shelf claims them |
//! | the oldest orders get what they need | vouchers issued, a record per order, concurrently |
//! | no order is left that can take any, or nothing is left | the rest is released: any shelf may claim it |
//!
//! The reservations of a SKU are one supply: the next is read when the vouchers of the previous ones do not
//! suffice, and they are assigned in memory, the oldest order first. An order that changed meanwhile is
//! served with the next batch, and so is what failed. An order that the store rejects permanently, or that
//! needs vouchers which are valid for longer, does not block those behind it: if a batch of orders takes
//! nothing, the next one is visited.

use async_recursion::async_recursion as boxed;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use time::Date;
use tracing::error;
use uuid::Uuid;
use vouchsafe_domain::ids::{OrderId, PartnerId, VoucherId};
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

/// Number of orders that may take nothing before the stock goes to the shelf: bounds the delay of other SKUs
/// to about a second.
const MAX_VISITS: usize = 1_024;

/// Distributes reserved stock to up to `limit` of the orders that wait for its SKU; once no order is left
/// that can take it, releases the rest to the shelf. More may be due afterwards.
///
/// # Errors
/// [`ProcureError`]; the rest stays reserved, and the next poll retries.
#[boxed(?Send)]
pub async fn distribute_reserved_stock(
    engine: &Engine,
    vendors: &dyn Vendors,
    reserved: &ReservedStock,
    limit: usize,
) -> Result<(), ProcureError> {
    let sku = &reserved.sku;
    let mut supply = Supply::of(reserved);
    let (mut last_visited, mut visits) = (None, 0);
    loop {
        let waiting = vendors.list_orders_waiting_for(sku, last_visited, limit).await?;
        let last_listed = waiting.last().map(|(_, order_id)| *order_id);
        let is_last_batch = waiting.len() < limit;
        visits += waiting.len();
        let batch = serve(engine, sku, &mut supply, waiting).await?;
        let are_all_visited = is_last_batch && batch.last_visited == last_listed;
        last_visited = batch.last_visited;
        if batch.has_changed || batch.has_delivered && batch.has_rejected {
            return Ok(());
        }
        if batch.has_rejected {
            supply = Supply::of(reserved);
        }
        if are_all_visited || supply.is_exhausted() || visits >= MAX_VISITS {
            break;
        }
        if batch.has_delivered {
            return Ok(());
        }
    }
    vendors
        .release_reservations(reserved.reservation_ids.clone())
        .await?;
    engine.inventory.notify_restocked(sku, Expiry::PAST);
    if visits >= MAX_VISITS
        && let Some(last_visited) = last_visited
    {
        vendors.expedite_orders_waiting_for(sku, last_visited).await?;
    }
    Ok(())
}

/// The outcome of a batch of orders.
#[derive(Debug, Clone, Copy, Default)]
struct ServedBatch {
    /// The last order that was offered vouchers.
    last_visited: Option<OrderId>,
    has_delivered: bool,
    /// The store rejected a delivery permanently; its vouchers are left.
    has_rejected: bool,
    /// An order changed meanwhile.
    has_changed: bool,
}

/// Serves a batch of orders, the oldest first.
async fn serve(
    engine: &Engine,
    sku: &Sku,
    supply: &mut Supply<'_>,
    waiting: Vec<(PartnerId, OrderId)>,
) -> Result<ServedBatch, ProcureError> {
    let mut batch = ServedBatch::default();
    let (mut served, today) = (Vec::new(), engine.clock.now().date());
    let load = |(partner_id, order_id)| async move {
        let stored = engine.store.load_order(partner_id, order_id).await;
        stored.map(|stored| (order_id, stored))
    };
    let mut orders = stream::iter(waiting).map(load).buffered(READ_CONCURRENCY);
    while let Some((order_id, stored)) = orders.try_next().await? {
        batch.last_visited = Some(order_id);
        let Some(stored) = stored else { continue };
        let allocations = supply.assign(engine, &stored.order, sku, today).await?;
        if !allocations.is_empty() {
            served.push((stored, allocations));
        }
        if supply.is_exhausted() {
            break;
        }
    }
    drop(orders);
    let attempts: Vec<_> = stream::iter(served)
        .map(|(stored, allocations)| deliver(engine, stored, allocations))
        .buffer_unordered(COMMIT_CONCURRENCY)
        .collect()
        .await;
    for attempt in attempts {
        match attempt {
            Ok(CommitAttempt::Done) => batch.has_delivered = true,
            Ok(CommitAttempt::Retry) => batch.has_changed = true,
            Err(FlowError::Poisoned) => batch.has_rejected = true,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(batch)
}

/// The vouchers of a SKU's reservations that no order was assigned.
struct Supply<'a> {
    /// Earliest expiry first.
    vouchers: Vec<StockVoucher>,
    /// Reservations whose vouchers were not needed yet, oldest first.
    unread: std::slice::Iter<'a, Uuid>,
}

impl<'a> Supply<'a> {
    fn of(reserved: &'a ReservedStock) -> Self {
        Self {
            vouchers: Vec::new(),
            unread: reserved.reservation_ids.iter(),
        }
    }

    fn is_exhausted(&self) -> bool {
        self.vouchers.is_empty() && self.unread.as_slice().is_empty()
    }

    /// Assigns vouchers to the lines of an order that wait for the SKU.
    async fn assign(
        &mut self,
        engine: &Engine,
        order: &Order,
        sku: &Sku,
        today: Date,
    ) -> Result<Vec<Allocation>, ProcureError> {
        let mut allocations = Vec::new();
        for (number, line) in (0_u16..).zip(&order.lines).filter(|_| !order.closed) {
            let needed = line.pending() as usize;
            if needed == 0 || line.sku() != *sku {
                continue;
            }
            let mut first = first_valid(&self.vouchers, line, today);
            while self.vouchers.len() - first < needed
                && let Some(reservation_id) = self.unread.next()
            {
                self.vouchers
                    .extend(engine.store.claim_reserved(*reservation_id).await?);
                self.vouchers.sort_unstable();
                first = first_valid(&self.vouchers, line, today);
            }
            let count = needed.min(self.vouchers.len() - first);
            let taken = self.vouchers.drain(first..first + count);
            allocations.extend(
                taken.map(|voucher| Allocation::new(VoucherId::generate(), number, sku.clone(), voucher)),
            );
        }
        Ok(allocations)
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
