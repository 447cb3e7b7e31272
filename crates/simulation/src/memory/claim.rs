//! Stock claims of a node: unowned chunks and its own at once, another live node's only if it does not
//! release them on demand.
//!
//! Chunks are claimed in order of expiry. A chunk locked by a running commit is skipped and reported as the
//! next one, so that the SKU does not look sold out.

use std::time::Duration;

use uuid::Uuid;
use vouchsafe_domain::ids::{ChunkId, StockId};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::stock::{
    CHUNK_VOUCHERS, ClaimedChunk, ClaimedStock, StockDemand, StockRequest, UnclaimableStock,
};
use vouchsafe_domain::voucher::{Expiry, StockVoucher};

use super::MemoryDatabase;
use super::demands;
use super::lock::Lock;
use super::reservations::is_for_any_waiting_order;
use super::state::State;
use super::tables::{ChunkRow, DbTime, NodeRow, Owner, Tables};

/// A clock that was set back by more than this voids the leases that were renewed before.
const MAX_CLOCK_CORRECTION: Duration = Duration::from_secs(10);

/// A chunk with free vouchers.
struct Candidate {
    chunk_id: ChunkId,
    vouchers: Vec<(StockId, Expiry)>,
}

impl Candidate {
    fn first_expiry(&self) -> Expiry {
        self.vouchers[0].1
    }
}

/// Stock of a SKU as one node sees it.
#[derive(Default)]
struct AvailableStock {
    /// Sorted by earliest expiry.
    candidates: Vec<Candidate>,
    emptied: Vec<ChunkId>,
    unclaimable: UnclaimableStock,
}

impl MemoryDatabase {
    /// Claims stock for a node. A superseded incarnation gets nothing.
    pub(super) fn claim(&self, by: &Owner, request: &StockRequest) -> ClaimedStock {
        let now = self.now();
        self.with(|state| claim(state, by, request, now))
    }

    /// Lists the demands of other nodes that this node should serve.
    pub(super) fn list_stock_demands(&self, owner: &Owner) -> Vec<StockDemand> {
        let now = self.now();
        self.with(|state| demands::list(&state.tables, owner, now))
    }

    /// Releases the chunks of a SKU that this incarnation owns, except those that it keeps or a commit has
    /// locked.
    pub(super) fn release_stock(&self, owner: &Owner, sku: &Sku, kept: &[ChunkId]) {
        self.with(|state| {
            let State { tables, locks, .. } = state;
            let released = tables.chunks.iter_mut().filter(|(chunk_id, chunk)| {
                chunk.sku == *sku
                    && chunk.owner.as_ref() == Some(owner)
                    && chunk.purchase.is_none()
                    && !kept.contains(chunk_id)
                    && !locks.is_held(&Lock::Chunk(**chunk_id))
            });
            released.for_each(|(_, chunk)| chunk.owner = None);
        });
    }

    /// Claims the stock reserved for a purchase.
    pub(super) fn claim_reserved(&self, by: &Owner, purchase: Uuid) -> Vec<StockVoucher> {
        self.with(|state| claim_reserved(state, by, purchase))
    }
}

/// Skips chunks locked by a commit, for which Postgres would have waited.
fn claim_reserved(state: &mut State, by: &Owner, purchase: Uuid) -> Vec<StockVoucher> {
    if !state.tables.is_current(by) {
        return Vec::new();
    }
    let State { tables, locks, .. } = state;
    let reserved = tables.chunks.iter_mut().filter(|(chunk_id, chunk)| {
        chunk.purchase == Some(purchase) && !locks.is_held(&Lock::Chunk(**chunk_id))
    });
    let own: Vec<ChunkId> = reserved
        .map(|(chunk_id, chunk)| {
            chunk.owner = Some(by.clone());
            *chunk_id
        })
        .collect();
    let vouchers = own.iter().flat_map(|chunk_id| {
        let free = tables.free_vouchers(&tables.chunks[chunk_id]).into_iter();
        free.map(|(stock_id, expiry)| StockVoucher {
            expiry,
            stock_id,
            chunk_id: *chunk_id,
        })
    });
    let mut vouchers: Vec<StockVoucher> = vouchers.collect();
    vouchers.sort_unstable();
    vouchers
}

fn claim(state: &mut State, by: &Owner, request: &StockRequest, now: DbTime) -> ClaimedStock {
    let mut claimed = claim_available(state, by, request, now, false);
    if claimed.unclaimable == UnclaimableStock::OwnedByOtherNode
        && request.demanded > 0
        && demands::renew(&mut state.tables, by, request, now)
    {
        claimed = claim_available(state, by, request, now, true);
    }
    let vouchers: usize = claimed.chunks.iter().map(|chunk| chunk.vouchers.len()).sum();
    if request.demanded > 0 && vouchers >= request.demanded {
        demands::end(&mut state.tables, by, &request.sku);
    }
    claimed
}

/// Claims what is available; with `takeover` also what other live nodes own.
fn claim_available(
    state: &mut State,
    by: &Owner,
    request: &StockRequest,
    now: DbTime,
    takeover: bool,
) -> ClaimedStock {
    let stock = available_stock(&state.tables, by, request, now, takeover);
    for chunk_id in stock.emptied {
        state
            .tables
            .chunks
            .entry(chunk_id)
            .and_modify(|chunk| chunk.emptied = true);
    }
    let may_claim =
        state.tables.is_current(by) && !demands::is_other_node_first(&state.tables, by, &request.sku, now);
    // No other node can sell what a node that is alone leaves.
    let minimum = if is_alone(&state.tables, by, now) {
        CHUNK_VOUCHERS
    } else {
        0
    };
    let enough = if may_claim {
        request.target_quantity.max(minimum)
    } else {
        0
    };
    let (mut claimed, mut vouchers) = (ClaimedStock::default(), 0);
    for candidate in stock.candidates {
        if vouchers >= enough || state.locks.is_held(&Lock::Chunk(candidate.chunk_id)) {
            claimed.next_expiry.get_or_insert(candidate.first_expiry());
            continue;
        }
        vouchers += candidate.vouchers.len();
        state
            .tables
            .chunks
            .entry(candidate.chunk_id)
            .and_modify(|chunk| chunk.owner = Some(by.clone()));
        let Candidate { chunk_id, vouchers } = candidate;
        claimed.chunks.push(ClaimedChunk { chunk_id, vouchers });
    }
    // Reported only if the claim found nothing; otherwise no caller waits for it.
    if claimed.chunks.is_empty() && claimed.next_expiry.is_none() {
        claimed.unclaimable = stock.unclaimable;
    }
    claimed
}

fn available_stock(
    tables: &Tables,
    by: &Owner,
    request: &StockRequest,
    now: DbTime,
    takeover: bool,
) -> AvailableStock {
    let mut stock = AvailableStock::default();
    let of_sku = tables.chunks.iter().filter(|(_, chunk)| {
        chunk.sku == request.sku && !chunk.emptied && chunk.purchase.is_none_or(is_for_any_waiting_order)
    });
    for (chunk_id, chunk) in of_sku {
        let mut vouchers = tables.free_vouchers(chunk);
        if vouchers.is_empty() {
            stock.emptied.push(*chunk_id);
            continue;
        }
        vouchers.retain(|(_, expiry)| *expiry >= request.not_before);
        if vouchers.is_empty() {
            continue;
        }
        if chunk.purchase.is_some() {
            stock.unclaimable = UnclaimableStock::Reserved;
        } else if !takeover && is_leased_by_other_node(tables, chunk, by, now) {
            if stock.unclaimable == UnclaimableStock::None {
                stock.unclaimable = UnclaimableStock::OwnedByOtherNode;
            }
        } else if !request.loaded_chunks.contains(chunk_id) {
            stock.candidates.push(Candidate {
                chunk_id: *chunk_id,
                vouchers,
            });
        }
    }
    stock
        .candidates
        .sort_by_key(|candidate| (candidate.first_expiry(), candidate.chunk_id));
    stock
}

/// Whether the newest incarnation of another node owns the chunk under a live lease. One that was renewed in
/// the future is not live: the clock was set back.
fn is_leased_by_other_node(tables: &Tables, chunk: &ChunkRow, by: &Owner, now: DbTime) -> bool {
    let other_owner = chunk.owner.as_ref().filter(|owner| owner.node != by.node);
    let newest = other_owner.filter(|owner| tables.is_current(owner));
    let row = newest.and_then(|owner| tables.nodes.get(&owner.node));
    row.is_some_and(|row| is_lease_live(row, now))
}

/// Whether no other node has a live lease.
fn is_alone(tables: &Tables, by: &Owner, now: DbTime) -> bool {
    !tables
        .nodes
        .iter()
        .any(|(node, row)| *node != by.node && is_lease_live(row, now))
}

fn is_lease_live(row: &NodeRow, now: DbTime) -> bool {
    row.lease_until > now && row.renewed_at.since(now) <= MAX_CLOCK_CORRECTION
}
