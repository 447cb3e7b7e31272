//! How a node claims chunks of stock: its own earlier starts' at once, nobody's, and a stranger's only after its lease.
//!
//! Rule: what expires first is claimed first. A chunk that a running commit stands on is passed over, and announced as
//! the next one, so that nobody thinks the SKU sold out.

use uuid::Uuid;

use super::MemoryDatabase;
use super::lock::Lock;
use super::state::State;
use super::tables::{ChunkRow, DbTime, Owner, Tables};
use super::wait::is_for_whoever_waits;
use crate::domain::ids::{ChunkId, StockId};
use crate::domain::stock::{ClaimedChunk, ClaimedStock, Elsewhere, StockRequest};
use crate::domain::voucher::{Expiry, Shelved};

/// A chunk with vouchers that can be sold.
struct Candidate {
    chunk_id: ChunkId,
    vouchers: Vec<(StockId, Expiry)>,
}

impl Candidate {
    fn first(&self) -> Expiry {
        self.vouchers[0].1
    }
}

/// What there is of a SKU, as one node sees it.
#[derive(Default)]
struct Offer {
    /// First to expire first.
    candidates: Vec<Candidate>,
    emptied: Vec<ChunkId>,
    elsewhere: Elsewhere,
}

impl MemoryDatabase {
    /// Claims stock for a node. A start that was superseded gets nothing.
    pub(super) fn claim(&self, by: &Owner, request: &StockRequest) -> ClaimedStock {
        let now = self.now();
        self.with(|state| claim(state, by, request, now))
    }

    /// Takes what was bought under a purchase and is kept for its order.
    pub(super) fn claim_bought(&self, by: &Owner, purchase: Uuid) -> Vec<Shelved> {
        self.with(|state| claim_bought(state, by, purchase))
    }
}

/// Chunks that a commit stands on stay whose they are: it would have been waited for.
fn claim_bought(state: &mut State, by: &Owner, purchase: Uuid) -> Vec<Shelved> {
    if !state.tables.is_current(by) {
        return Vec::new();
    }
    let State { tables, locks, .. } = state;
    let kept = tables.chunks.iter_mut().filter(|(chunk_id, chunk)| {
        chunk.purchase == Some(purchase) && !locks.is_held(&Lock::Chunk(**chunk_id))
    });
    let own: Vec<ChunkId> = kept
        .map(|(chunk_id, chunk)| {
            chunk.owner = Some(by.clone());
            *chunk_id
        })
        .collect();
    let vouchers = own.iter().flat_map(|chunk_id| {
        let free = tables.free(&tables.chunks[chunk_id]).into_iter();
        free.map(|(stock_id, expiry)| Shelved {
            expiry,
            stock_id,
            chunk_id: *chunk_id,
        })
    });
    let mut vouchers: Vec<Shelved> = vouchers.collect();
    vouchers.sort_unstable();
    vouchers
}

fn claim(state: &mut State, by: &Owner, request: &StockRequest, now: DbTime) -> ClaimedStock {
    let offer = offer(&state.tables, by, request, now);
    for chunk_id in offer.emptied {
        state
            .tables
            .chunks
            .entry(chunk_id)
            .and_modify(|chunk| chunk.emptied = true);
    }
    let enough = if state.tables.is_current(by) {
        request.enough
    } else {
        0
    };
    let (mut claimed, mut vouchers) = (ClaimedStock::default(), 0);
    for candidate in offer.candidates {
        if vouchers >= enough || state.locks.is_held(&Lock::Chunk(candidate.chunk_id)) {
            claimed.next.get_or_insert(candidate.first());
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
    // Asked only when there is nothing to be had here: otherwise nobody would wait for it.
    if claimed.chunks.is_empty() && claimed.next.is_none() {
        claimed.elsewhere = offer.elsewhere;
    }
    claimed
}

fn offer(tables: &Tables, by: &Owner, request: &StockRequest, now: DbTime) -> Offer {
    let mut offer = Offer::default();
    let of_sku = tables.chunks.iter().filter(|(_, chunk)| {
        chunk.sku == request.sku && !chunk.emptied && chunk.purchase.is_none_or(is_for_whoever_waits)
    });
    for (chunk_id, chunk) in of_sku {
        let mut vouchers = tables.free(chunk);
        if vouchers.is_empty() {
            offer.emptied.push(*chunk_id);
            continue;
        }
        vouchers.retain(|(_, expiry)| *expiry >= request.not_before);
        if vouchers.is_empty() {
            continue;
        }
        if chunk.purchase.is_some() {
            offer.elsewhere = Elsewhere::Kept;
        } else if belongs_elsewhere(tables, chunk, by, now) {
            if offer.elsewhere == Elsewhere::Nowhere {
                offer.elsewhere = Elsewhere::Owned;
            }
        } else if !request.loaded.contains(chunk_id) {
            offer.candidates.push(Candidate {
                chunk_id: *chunk_id,
                vouchers,
            });
        }
    }
    offer
        .candidates
        .sort_by_key(|candidate| (candidate.first(), candidate.chunk_id));
    offer
}

/// Whether the chunk is another node's whose lease is not over.
fn belongs_elsewhere(tables: &Tables, chunk: &ChunkRow, by: &Owner, now: DbTime) -> bool {
    let stranger = chunk.owner.as_ref().filter(|owner| owner.node != by.node);
    let lease = stranger
        .and_then(|owner| tables.nodes.get(&owner.node))
        .map(|row| row.lease_until);
    lease.is_some_and(|until| until > now)
}
