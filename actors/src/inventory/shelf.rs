//! Shelf: the vouchers of one SKU that this node may sell, earliest expiry first. Pure.
//!
//! The free stock falls with a decision and rises only with a commit. Vouchers are sold in the exact order of
//! their expiry: none is sold while a chunk that could still be claimed starts with an earlier one (the
//! horizon). A shortfall is final only if it would remain with every open hold released.

mod free_vouchers;

use std::collections::{BTreeSet, HashMap};

use vouchsafe_domain::ids::{ChunkId, StockId};
use vouchsafe_domain::stock::{ClaimedChunk, ClaimedStock};
use vouchsafe_domain::voucher::{Expiry, StockVoucher};

use self::free_vouchers::{FreeVouchers, VoucherPosition};

/// The decision on a request for vouchers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShelfDecision {
    /// These vouchers are held.
    Held(Vec<StockVoucher>),
    /// More stock must be claimed first.
    Refill,
    /// Not possible now, but possible if open holds are released.
    Wait,
    /// Not possible even if every hold is released. Contains the number of vouchers available in that case.
    Short(usize),
}

/// Counts of one chunk's vouchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chunk {
    /// The lowest stock id; positions are offsets from it.
    first: StockId,
    free: usize,
    held: usize,
    state: ChunkState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkState {
    /// Its free vouchers are for sale.
    Open,
    /// Its free vouchers are unknown: none is sold until the chunk is claimed again.
    Suspect,
    /// Another node gets its free vouchers.
    GivenUp,
}

/// The shelf of a SKU.
#[derive(Debug, Clone)]
pub struct Shelf {
    free: FreeVouchers,
    chunks: HashMap<ChunkId, Chunk>,
    held: usize,
    /// The earliest expiry that could still be claimed; `None` if nothing can be claimed.
    horizon: Option<Expiry>,
    /// The earliest expiry reported since the claim in flight started; its result may not include it.
    expected_since_claim: Option<Expiry>,
    /// Vouchers that expire earlier may be missing from the loaded chunks.
    floor: Expiry,
    /// Everything was invalidated since the claim in flight started; its result may be outdated.
    invalidated: bool,
}

impl Default for Shelf {
    fn default() -> Self {
        Self::new()
    }
}

impl Shelf {
    /// An empty shelf that does not know what could be claimed.
    #[must_use]
    pub fn new() -> Self {
        Self {
            free: FreeVouchers::default(),
            chunks: HashMap::new(),
            held: 0,
            horizon: Some(Expiry::PAST),
            expected_since_claim: None,
            floor: Expiry::PAST,
            invalidated: false,
        }
    }

    /// The number of free vouchers.
    #[must_use]
    pub const fn free(&self) -> usize {
        self.free.len()
    }

    /// The number of held vouchers.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.held
    }

    /// Vouchers that expire earlier may be missing from the loaded chunks.
    #[must_use]
    pub const fn floor(&self) -> Expiry {
        self.floor
    }

    /// Whether more stock could be claimed.
    #[must_use]
    pub const fn can_grow(&self) -> bool {
        self.horizon.is_some()
    }

    /// The chunks in memory; they are not claimed again.
    #[must_use]
    pub fn loaded_chunks(&self) -> Vec<ChunkId> {
        self.chunks.keys().copied().collect()
    }

    /// The free vouchers, in the order of sale.
    pub fn free_vouchers(&self) -> impl Iterator<Item = StockVoucher> {
        self.free
            .iter()
            .map(|position| self.chunks[&position.chunk_id].voucher_at(position))
    }

    /// Holds `quantity` vouchers that expire no earlier than `not_before`. `confirmed` means that the store
    /// was asked for more after the request arrived.
    pub fn hold(&mut self, quantity: usize, not_before: Expiry, confirmed: bool) -> ShelfDecision {
        if not_before < self.floor {
            self.invalidate_all();
            return ShelfDecision::Refill;
        }
        let (usable, last) = self.free.count_usable(quantity, not_before);
        if usable < quantity {
            return self.shortage(quantity, usable, confirmed);
        }
        if self.horizon.is_some_and(|horizon| horizon < last) {
            return ShelfDecision::Refill;
        }
        let mut held = Vec::with_capacity(quantity);
        self.free.take(quantity, not_before, |position| {
            if let Some(chunk) = self.chunks.get_mut(&position.chunk_id) {
                chunk.free -= 1;
                chunk.held += 1;
                held.push(chunk.voucher_at(position));
            }
        });
        assert!(held.len() == quantity, "counted vouchers are there to be taken");
        self.held += quantity;
        // The order in which an order shows its vouchers, now and whenever it is read: by expiry, then by id,
        // across chunks.
        held.sort_unstable();
        ShelfDecision::Held(held)
    }

    fn shortage(&self, quantity: usize, usable: usize, confirmed: bool) -> ShelfDecision {
        // A closed chunk can be claimed again once no voucher of it is held; until then its stock is unknown.
        let unknown = || self.chunks.values().any(|chunk| chunk.state != ChunkState::Open);
        if self.can_grow() || !confirmed {
            ShelfDecision::Refill
        } else if usable + self.held >= quantity || unknown() {
            ShelfDecision::Wait
        } else {
            ShelfDecision::Short(usable + self.held)
        }
    }

    pub const fn start_claim(&mut self) {
        self.expected_since_claim = None;
        self.invalidated = false;
    }

    /// Adds the result of a claim that left out vouchers expiring before `not_before`.
    pub fn add_claimed(&mut self, claimed: &ClaimedStock, not_before: Expiry) {
        if self.invalidated {
            // The chunks belong to this node and are returned by the next claim again.
            return;
        }
        for chunk in &claimed.chunks {
            if self.chunks.contains_key(&chunk.chunk_id) {
                continue;
            }
            self.add_chunk(chunk);
        }
        self.horizon = earlier(claimed.next_expiry, self.expected_since_claim);
        self.floor = self.floor.max(not_before);
        self.drop_expired(not_before);
    }

    fn add_chunk(&mut self, claimed: &ClaimedChunk) {
        let ids = claimed.vouchers.iter().map(|(stock_id, _)| *stock_id);
        let chunk = Chunk {
            first: ids.min().unwrap_or(StockId(0)),
            free: claimed.vouchers.len(),
            held: 0,
            state: ChunkState::Open,
        };
        let vouchers = claimed.vouchers.iter().map(|(stock_id, expiry)| StockVoucher {
            expiry: *expiry,
            chunk_id: claimed.chunk_id,
            stock_id: *stock_id,
        });
        self.free
            .insert_all(vouchers.map(|voucher| chunk.position_of(&voucher)));
        self.chunks.insert(claimed.chunk_id, chunk);
    }

    /// Reports that stock with earliest expiry `expiry` can be claimed.
    pub fn expect_stock(&mut self, expiry: Expiry) {
        self.horizon = earlier(self.horizon, Some(expiry));
        self.expected_since_claim = earlier(self.expected_since_claim, Some(expiry));
    }

    /// Held vouchers are sold.
    pub fn settle(&mut self, vouchers: &[StockVoucher]) {
        self.remove_held(vouchers);
        vouchers
            .iter()
            .for_each(|voucher| self.drop_if_empty(voucher.chunk_id));
    }

    /// Held vouchers are released.
    pub fn release(&mut self, vouchers: &[StockVoucher]) {
        self.remove_held(vouchers);
        for voucher in vouchers {
            match self.chunks.get_mut(&voucher.chunk_id) {
                Some(chunk) if chunk.state == ChunkState::Open => {
                    chunk.free += 1;
                    self.free.insert(chunk.position_of(voucher));
                }
                Some(chunk) if chunk.state == ChunkState::GivenUp => {
                    // Free again, for each node: without it a shortfall here would look final.
                    self.expect_stock(voucher.expiry);
                    self.drop_if_empty(voucher.chunk_id);
                }
                _ => self.drop_if_empty(voucher.chunk_id),
            }
        }
    }

    /// A commit rejected held vouchers: their chunks are not sold from until they have been claimed again,
    /// once no voucher of them is held.
    pub fn invalidate(&mut self, vouchers: &[StockVoucher]) {
        let suspects = vouchers.iter().map(|voucher| voucher.chunk_id).collect();
        self.close_chunks(&suspects, ChunkState::Suspect);
        self.release(vouchers);
    }

    /// Sells no voucher of these chunks until they have been claimed again.
    fn close_chunks(&mut self, closed: &BTreeSet<ChunkId>, state: ChunkState) {
        self.free.remove_chunks(closed);
        for chunk_id in closed {
            self.update_chunk(*chunk_id, |chunk| {
                chunk.state = state;
                chunk.free = 0;
            });
        }
    }

    fn remove_held(&mut self, vouchers: &[StockVoucher]) {
        assert!(
            vouchers.len() <= self.held,
            "more vouchers were returned than were held"
        );
        self.held -= vouchers.len();
        for voucher in vouchers {
            self.update_chunk(voucher.chunk_id, |chunk| {
                assert!(chunk.held > 0, "a voucher was returned that was not held");
                chunk.held -= 1;
            });
        }
    }

    /// Drops a chunk without free or held vouchers; a suspect one can then be claimed again.
    fn drop_if_empty(&mut self, chunk_id: ChunkId) {
        let Some(chunk) = self.chunks.get(&chunk_id).copied() else {
            return;
        };
        if chunk.free + chunk.held > 0 {
            return;
        }
        self.chunks.remove(&chunk_id);
        if chunk.state == ChunkState::Suspect {
            // The rest of the chunk and its expiry are unknown.
            self.expect_stock(Expiry::PAST);
        }
    }

    /// Invalidates all chunks: each is claimed again once no voucher of it is held. Called when vouchers may
    /// have been taken out, or when a lower minimum validity applies than the one claimed for (the clock was
    /// set back, or the product was changed).
    pub fn invalidate_all(&mut self) {
        self.invalidated = true;
        self.free.clear();
        self.chunks.retain(|_, chunk| chunk.held > 0);
        for chunk in self.chunks.values_mut() {
            chunk.free = 0;
            chunk.state = ChunkState::Suspect;
        }
        self.floor = Expiry::PAST;
        self.expect_stock(Expiry::PAST);
    }

    /// Gives up whole chunks with at least `quantity` free vouchers, or all, the last to expire first. A
    /// chunk with held vouchers stays loaded, without free ones, until the holds end.
    pub fn give_up(&mut self, quantity: usize) {
        let (mut given_up, mut vouchers) = (BTreeSet::new(), 0);
        for chunk_id in self.free.chunks_last_first() {
            if vouchers >= quantity {
                break;
            }
            if given_up.insert(chunk_id) {
                vouchers += self.chunks.get(&chunk_id).map_or(0, |chunk| chunk.free);
            }
        }
        self.close_chunks(&given_up, ChunkState::GivenUp);
        given_up
            .into_iter()
            .for_each(|chunk_id| self.drop_if_empty(chunk_id));
    }

    fn drop_expired(&mut self, not_before: Expiry) {
        for position in self.free.take_expired(not_before) {
            self.update_chunk(position.chunk_id, |chunk| chunk.free -= 1);
            self.drop_if_empty(position.chunk_id);
        }
    }

    fn update_chunk(&mut self, chunk_id: ChunkId, change: impl FnOnce(&mut Chunk)) {
        if let Some(chunk) = self.chunks.get_mut(&chunk_id) {
            change(chunk);
        }
    }
}

impl Chunk {
    /// The position of a voucher in the chunk.
    fn position_of(&self, voucher: &StockVoucher) -> VoucherPosition {
        let offset = u32::try_from(voucher.stock_id.0 - self.first.0);
        assert!(offset.is_ok(), "a voucher is outside of its chunk's range");
        VoucherPosition {
            expiry: voucher.expiry,
            chunk_id: voucher.chunk_id,
            offset: offset.unwrap_or_default(),
        }
    }

    /// The voucher at a position in the chunk.
    fn voucher_at(&self, position: VoucherPosition) -> StockVoucher {
        StockVoucher {
            expiry: position.expiry,
            chunk_id: position.chunk_id,
            stock_id: StockId(self.first.0 + i64::from(position.offset)),
        }
    }
}

fn earlier(left: Option<Expiry>, right: Option<Expiry>) -> Option<Expiry> {
    left.into_iter().chain(right).min()
}

#[cfg(test)]
mod tests;
