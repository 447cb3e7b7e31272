//! How a node claims chunks of stock: its own first starts' at once, nobody's, and a stranger's only after its lease.
//!
//! Rule: what expires first is claimed first. A chunk that a running commit stands on does not change hands.

use super::MemoryDatabase;
use super::lock::{Lock, LockTimeout};
use super::state::State;
use super::tables::{ChunkRow, DbTime, Owner, Tables};
use crate::domain::ids::{ChunkId, StockId};
use crate::domain::stock::{ClaimedChunk, ClaimedStock, StockRequest};
use crate::domain::voucher::Expiry;
use crate::store::Unavailable;

/// A chunk with vouchers that can be sold.
struct Candidate {
    chunk_id: ChunkId,
    vouchers: Vec<(StockId, Expiry)>,
    changes_hands: bool,
}

impl Candidate {
    fn first(&self) -> Expiry {
        self.vouchers[0].1
    }
}

/// What there is to be claimed, first to expire first.
struct Offer {
    candidates: Vec<Candidate>,
    emptied: Vec<ChunkId>,
    elsewhere: bool,
}

impl MemoryDatabase {
    /// Claims stock for a node, waiting for commits that stand on what it wants.
    pub(super) async fn claim(
        &self,
        by: &Owner,
        request: &StockRequest,
    ) -> Result<ClaimedStock, Unavailable> {
        let claimed = self
            .wait_for(|state| claim_now(state, by, request, self.now()))
            .await;
        claimed.unwrap_or_else(|LockTimeout| Err(Unavailable("lock timeout".to_owned())))
    }
}

/// One attempt; `None` while a running commit stands on a chunk that would change hands.
fn claim_now(
    state: &mut State,
    by: &Owner,
    request: &StockRequest,
    now: DbTime,
) -> Option<Result<ClaimedStock, Unavailable>> {
    if !state.tables.is_current(by) {
        return Some(Err(Unavailable(
            "a later start of this node has taken over".to_owned(),
        )));
    }
    let Offer {
        mut candidates,
        emptied,
        elsewhere,
    } = offer(&state.tables, by, request, now);
    let rest = candidates.split_off(how_many(&candidates, request.enough));
    let stands_on = |candidate: &Candidate| state.locks.is_held(&Lock::Chunk(candidate.chunk_id));
    if candidates
        .iter()
        .any(|candidate| candidate.changes_hands && stands_on(candidate))
    {
        return None;
    }
    for chunk_id in emptied {
        state
            .tables
            .chunks
            .entry(chunk_id)
            .and_modify(|chunk| chunk.emptied = true);
    }
    for candidate in &candidates {
        state
            .tables
            .chunks
            .entry(candidate.chunk_id)
            .and_modify(|chunk| chunk.owner = Some(by.clone()));
    }
    let hand_out = |candidate: Candidate| ClaimedChunk {
        chunk_id: candidate.chunk_id,
        vouchers: candidate.vouchers,
    };
    Some(Ok(ClaimedStock {
        next: rest.first().map(Candidate::first),
        chunks: candidates.into_iter().map(hand_out).collect(),
        elsewhere,
    }))
}

/// How many of the first candidates make `enough` vouchers.
fn how_many(candidates: &[Candidate], enough: usize) -> usize {
    let mut sum = 0;
    candidates
        .iter()
        .take_while(|candidate| {
            let wanted = sum < enough;
            sum += candidate.vouchers.len();
            wanted
        })
        .count()
}

fn offer(tables: &Tables, by: &Owner, request: &StockRequest, now: DbTime) -> Offer {
    let mut offer = Offer {
        candidates: Vec::new(),
        emptied: Vec::new(),
        elsewhere: false,
    };
    let of_sku = tables
        .chunks
        .iter()
        .filter(|(_, chunk)| chunk.sku == request.sku && !chunk.emptied);
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
        if belongs_elsewhere(tables, chunk, by, now) {
            offer.elsewhere = true;
        } else if !request.loaded.contains(chunk_id) {
            let changes_hands = chunk.owner.as_ref().is_some_and(|owner| owner != by);
            offer.candidates.push(Candidate {
                chunk_id: *chunk_id,
                vouchers,
                changes_hands,
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
