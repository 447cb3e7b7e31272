//! Who waits for stock, and what stock is kept for whom.
//!
//! Rule: stock that comes in while orders wait for its SKU is kept for them under an id of its own. Of orders that were
//! accepted in one moment the order is by their references: ids are made by chance, and one seed gives one history.

use uuid::Uuid;

use super::MemoryDatabase;
use super::tables::{ChunkRow, Tables};
use crate::domain::ids::ChunkId;
use crate::domain::order::{Order, PendingReason};
use crate::domain::product::Sku;

/// Marks the ids under which stock is kept for nobody in particular.
const KEPT: u128 = 1 << 120;

impl MemoryDatabase {
    /// The orders that wait for a vendor, oldest first.
    #[must_use]
    pub fn waiting_orders(&self) -> Vec<Order> {
        self.with(|state| {
            let mut waiting: Vec<Order> = waiting(&state.tables).cloned().collect();
            waiting.sort_by_key(|order| (order.created_at, order.partner_id, order.reference.clone()));
            waiting
        })
    }

    /// The ids under which stock is kept, and of what, what came first first.
    #[must_use]
    pub fn kept_stock(&self) -> Vec<(Uuid, Sku)> {
        self.with(|state| {
            let chunks = state.tables.chunks.values();
            let mut kept: Vec<_> = chunks
                .filter_map(|chunk| Some((chunk.purchase?, chunk.sku.clone())))
                .collect();
            kept.dedup();
            kept
        })
    }

    /// What is left of a purchase is for those who wait for it, if anybody does, else for any shelf.
    pub fn pass_on(&self, purchase: Uuid) -> Option<Sku> {
        self.with(|state| {
            let left = state.tables.chunks.iter();
            let left: Vec<(ChunkId, Sku)> = left
                .filter(|(_, chunk)| chunk.purchase == Some(purchase))
                .map(|(chunk_id, chunk)| (*chunk_id, chunk.sku.clone()))
                .collect();
            for (chunk_id, sku) in &left {
                let heir = kept_for_waiting(&state.tables, sku, *chunk_id);
                state
                    .tables
                    .chunks
                    .entry(*chunk_id)
                    .and_modify(|chunk: &mut ChunkRow| chunk.purchase = heir);
            }
            left.into_iter().next().map(|(_, sku)| sku)
        })
    }
}

/// Under which id a chunk is kept that comes in now: none, where nobody waits for it.
pub(super) fn kept_for_waiting(tables: &Tables, sku: &Sku, chunk_id: ChunkId) -> Option<Uuid> {
    let waits = |order: &Order| {
        order
            .lines
            .iter()
            .any(|line| line.pending() > 0 && line.sku() == *sku)
    };
    let id = KEPT | u128::from(chunk_id.0.unsigned_abs());
    waiting(tables).any(waits).then_some(Uuid::from_u128(id))
}

/// Whether stock that is kept under this id is for nobody in particular.
pub(super) const fn is_for_whoever_waits(kept_id: Uuid) -> bool {
    kept_id.as_u128() >> 64 == KEPT >> 64
}

fn waiting(tables: &Tables) -> impl Iterator<Item = &Order> {
    let orders = tables.orders.values().map(|row| &row.order);
    orders.filter(|order| order.pending_reason == Some(PendingReason::Vendor) && !order.closed)
}
