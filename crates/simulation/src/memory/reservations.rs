//! Reservations of incoming stock for orders that wait for it.
//!
//! Stock that arrives while orders wait for its SKU is reserved under its own id. Orders accepted at the same
//! time are sorted by reference, because ids are random and one seed must reproduce one run.

use uuid::Uuid;
use vouchsafe_domain::ids::{ChunkId, StockId};
use vouchsafe_domain::order::{Order, PendingReason};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::{Expiry, StockVoucher};

use super::MemoryDatabase;
use super::tables::{ChunkRow, StockRow, Tables};

/// High bits of reservation ids that belong to no particular purchase.
const RESERVATION_ID_BASE: u128 = 1 << 120;

impl MemoryDatabase {
    /// Orders that wait for a vendor, oldest first.
    #[must_use]
    pub fn waiting_orders(&self) -> Vec<Order> {
        self.with(|state| {
            let mut waiting: Vec<Order> = orders_awaiting_vendor(&state.tables).cloned().collect();
            waiting.sort_by_key(|order| (order.created_at, order.partner_id, order.reference.clone()));
            waiting
        })
    }

    /// Reservation ids with their SKUs, oldest first.
    #[must_use]
    pub fn reserved_stock(&self) -> Vec<(Uuid, Sku)> {
        self.with(|state| {
            let chunks = state.tables.chunks.values();
            let mut reserved: Vec<_> = chunks
                .filter_map(|chunk| Some((chunk.purchase?, chunk.sku.clone())))
                .collect();
            reserved.dedup();
            reserved
        })
    }

    /// Reserves the remainder of a purchase for waiting orders, or releases it to the shelves if there are
    /// none. Returns its SKU.
    pub fn release_remainder(&self, purchase: Uuid) -> Option<Sku> {
        self.with(|state| {
            let remaining = state.tables.chunks.iter();
            let remaining: Vec<(ChunkId, Sku)> = remaining
                .filter(|(_, chunk)| chunk.purchase == Some(purchase))
                .map(|(chunk_id, chunk)| (*chunk_id, chunk.sku.clone()))
                .collect();
            for (chunk_id, sku) in &remaining {
                let reservation = reservation_for_waiting_order(&state.tables, sku, *chunk_id);
                state
                    .tables
                    .chunks
                    .entry(*chunk_id)
                    .and_modify(|chunk: &mut ChunkRow| chunk.purchase = reservation);
            }
            remaining.into_iter().next().map(|(_, sku)| sku)
        })
    }
}

/// Reservation id of an incoming chunk; `None` if no order waits for its SKU.
fn reservation_for_waiting_order(tables: &Tables, sku: &Sku, chunk_id: ChunkId) -> Option<Uuid> {
    let is_waiting = |order: &Order| {
        order
            .lines
            .iter()
            .any(|line| line.pending() > 0 && line.sku() == *sku)
    };
    let id = RESERVATION_ID_BASE | u128::from(chunk_id.0.unsigned_abs());
    orders_awaiting_vendor(tables)
        .any(is_waiting)
        .then_some(Uuid::from_u128(id))
}

/// Whether the reservation belongs to any waiting order rather than a purchase.
pub(super) const fn is_for_any_waiting_order(kept_id: Uuid) -> bool {
    kept_id.as_u128() >> 64 == RESERVATION_ID_BASE >> 64
}

fn orders_awaiting_vendor(tables: &Tables) -> impl Iterator<Item = &Order> {
    let orders = tables.orders.values().map(|row| &row.order);
    orders.filter(|order| order.pending_reason == Some(PendingReason::Vendor) && !order.closed)
}

/// Inserts stock rows (id, expiry, code) as one unowned chunk, reserved if an order waits for it.
pub(super) fn insert_chunk(
    tables: &mut Tables,
    sku: &Sku,
    stock: impl Iterator<Item = (StockId, Expiry, StockId)>,
) -> Vec<StockVoucher> {
    let chunk_id = ChunkId(tables.chunks.last_key_value().map_or(1, |(last, _)| last.0 + 1));
    let mut vouchers = Vec::new();
    for (stock_id, expiry, code) in stock {
        let row = StockRow {
            sku: sku.clone(),
            chunk_id,
            expiry,
            code,
        };
        tables.stock.insert(stock_id, row);
        vouchers.push(StockVoucher {
            expiry,
            stock_id,
            chunk_id,
        });
    }
    let chunk = ChunkRow {
        purchase: reservation_for_waiting_order(tables, sku, chunk_id),
        sku: sku.clone(),
        owner: None,
        emptied: false,
        stock: vouchers.iter().map(|voucher| voucher.stock_id).collect(),
    };
    tables.chunks.insert(chunk_id, chunk);
    vouchers
}
