//! The vouchers of one SKU that this node may sell: what expires first goes first. Pure.
//!
//! Rule: what is on the shelf goes down at the decision and up only after a commit. Vouchers are handed out in the exact
//! order of their expiry: none is sold while a chunk that could still be claimed begins with an earlier one (the horizon).
//! A shortage stands only if it would stand with every unsettled hold given back.

mod free;

use std::collections::{BTreeSet, HashMap};

use self::free::{Free, Place};
use crate::domain::ids::{ChunkId, StockId};
use crate::domain::stock::{ClaimedChunk, ClaimedStock};
use crate::domain::voucher::{Expiry, Shelved};

/// The answer to "set so many aside".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShelfDecision {
    /// These are set aside.
    Held(Vec<Shelved>),
    /// More has to be claimed first.
    Refill,
    /// Not now; but they would be there if what is set aside came back.
    Wait,
    /// They are not there, whatever comes back. Holds how many may be, if all does.
    Short(usize),
}

/// How many vouchers of a chunk are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chunk {
    /// The places of its vouchers are counted from this one.
    first: StockId,
    free: usize,
    aside: usize,
    /// What of it is free is not known here any more: none of it is sold until it is claimed again.
    suspect: bool,
}

/// The shelf.
#[derive(Debug, Clone)]
pub struct Shelf {
    free: Free,
    chunks: HashMap<ChunkId, Chunk>,
    aside: usize,
    /// The earliest expiry that could still be claimed; `None` when nothing could.
    horizon: Option<Expiry>,
    /// The earliest expiry that came up since the claim under way began: its answer may not know of it.
    come_up: Option<Expiry>,
    /// What expires earlier may be missing from the chunks that are here.
    floor: Expiry,
    /// All was doubted since the claim under way began: its answer may be as wrong as what was here.
    doubted: bool,
}

impl Default for Shelf {
    fn default() -> Self {
        Self::new()
    }
}

impl Shelf {
    /// An empty shelf that knows nothing of what could be claimed.
    #[must_use]
    pub fn new() -> Self {
        Self {
            free: Free::default(),
            chunks: HashMap::new(),
            aside: 0,
            horizon: Some(Expiry::PAST),
            come_up: None,
            floor: Expiry::PAST,
            doubted: false,
        }
    }

    /// How many can be sold now.
    #[must_use]
    pub const fn free(&self) -> usize {
        self.free.len()
    }

    /// How many are set aside.
    #[must_use]
    pub const fn aside(&self) -> usize {
        self.aside
    }

    /// What expires earlier may be missing from the chunks that are here.
    #[must_use]
    pub const fn floor(&self) -> Expiry {
        self.floor
    }

    /// Whether something could still be claimed.
    #[must_use]
    pub const fn can_grow(&self) -> bool {
        self.horizon.is_some()
    }

    /// The chunks that are in memory: they are not claimed again.
    #[must_use]
    pub fn loaded(&self) -> Vec<ChunkId> {
        self.chunks.keys().copied().collect()
    }

    /// The vouchers that can be sold, in the order of sale.
    pub fn on_sale(&self) -> impl Iterator<Item = Shelved> {
        self.free
            .iter()
            .map(|place| self.chunks[&place.chunk_id].voucher(place))
    }

    /// Sets `quantity` vouchers aside that expire no earlier than `not_before`. `confirmed` says that the store was asked
    /// for more after this request came.
    pub fn hold(&mut self, quantity: usize, not_before: Expiry, confirmed: bool) -> ShelfDecision {
        if not_before < self.floor {
            self.doubt_all();
            return ShelfDecision::Refill;
        }
        let (usable, last) = self.free.reach(quantity, not_before);
        if usable < quantity {
            return self.shortage(quantity, usable, confirmed);
        }
        if self.horizon.is_some_and(|horizon| horizon < last) {
            return ShelfDecision::Refill;
        }
        let mut held = Vec::with_capacity(quantity);
        self.free.take(quantity, not_before, |place| {
            if let Some(chunk) = self.chunks.get_mut(&place.chunk_id) {
                chunk.free -= 1;
                chunk.aside += 1;
                held.push(chunk.voucher(place));
            }
        });
        self.aside += quantity;
        // As an order shows its vouchers, when it is answered and whenever it is read: by day, then by id, whatever chunk.
        held.sort_unstable();
        ShelfDecision::Held(held)
    }

    fn shortage(&self, quantity: usize, usable: usize, confirmed: bool) -> ShelfDecision {
        // A suspect chunk can be claimed again as soon as nothing of it is under way: until then nobody knows.
        let unknown = || self.chunks.values().any(|chunk| chunk.suspect);
        if self.can_grow() || !confirmed {
            ShelfDecision::Refill
        } else if usable + self.aside >= quantity || unknown() {
            ShelfDecision::Wait
        } else {
            ShelfDecision::Short(usable + self.aside)
        }
    }

    /// The store is about to be asked for more.
    pub const fn claim_begins(&mut self) {
        self.come_up = None;
        self.doubted = false;
    }

    /// A claim brought this, and left out what expires before `not_before`.
    pub fn shelve(&mut self, claimed: &ClaimedStock, not_before: Expiry) {
        if self.doubted {
            // The chunks are this node's, and come with the next claim again.
            return;
        }
        for chunk in &claimed.chunks {
            if self.chunks.contains_key(&chunk.chunk_id) {
                continue;
            }
            self.shelve_chunk(chunk);
        }
        self.horizon = earlier(claimed.next, self.come_up);
        self.floor = self.floor.max(not_before);
        self.drop_lapsed(not_before);
    }

    fn shelve_chunk(&mut self, claimed: &ClaimedChunk) {
        let ids = claimed.vouchers.iter().map(|(stock_id, _)| *stock_id);
        let chunk = Chunk {
            first: ids.min().unwrap_or(StockId(0)),
            free: claimed.vouchers.len(),
            aside: 0,
            suspect: false,
        };
        let vouchers = claimed.vouchers.iter().map(|(stock_id, expiry)| Shelved {
            expiry: *expiry,
            chunk_id: claimed.chunk_id,
            stock_id: *stock_id,
        });
        self.free.put_all(vouchers.map(|voucher| chunk.place(&voucher)));
        self.chunks.insert(claimed.chunk_id, chunk);
    }

    /// New stock can be claimed, the earliest of it expiring then.
    pub fn expect(&mut self, expiry: Expiry) {
        self.horizon = earlier(self.horizon, Some(expiry));
        self.come_up = earlier(self.come_up, Some(expiry));
    }

    /// What was set aside is sold.
    pub fn settle(&mut self, vouchers: &[Shelved]) {
        self.take_back(vouchers);
        vouchers
            .iter()
            .for_each(|voucher| self.forget_if_done(voucher.chunk_id));
    }

    /// What was set aside comes back.
    pub fn release(&mut self, vouchers: &[Shelved]) {
        self.take_back(vouchers);
        for voucher in vouchers {
            match self.chunks.get_mut(&voucher.chunk_id) {
                Some(chunk) if !chunk.suspect => {
                    chunk.free += 1;
                    self.free.put(chunk.place(voucher));
                }
                _ => self.forget_if_done(voucher.chunk_id),
            }
        }
    }

    /// A commit refused what was set aside: its chunks are sold from no more, and claimed anew once nothing of them is
    /// under way.
    pub fn refute(&mut self, vouchers: &[Shelved]) {
        let suspects: BTreeSet<ChunkId> = vouchers.iter().map(|voucher| voucher.chunk_id).collect();
        self.free.forget(&suspects);
        for suspect in suspects {
            self.chunk(suspect, |chunk| {
                chunk.suspect = true;
                chunk.free = 0;
            });
        }
        self.release(vouchers);
    }

    fn take_back(&mut self, vouchers: &[Shelved]) {
        assert!(vouchers.len() <= self.aside, "more comes back than was set aside");
        self.aside -= vouchers.len();
        for voucher in vouchers {
            self.chunk(voucher.chunk_id, |chunk| {
                assert!(chunk.aside > 0, "a voucher comes back that was not set aside");
                chunk.aside -= 1;
            });
        }
    }

    /// Forgets a chunk of which nothing is left here; a suspect one can then be claimed again.
    fn forget_if_done(&mut self, chunk_id: ChunkId) {
        let Some(chunk) = self.chunks.get(&chunk_id).copied() else {
            return;
        };
        if chunk.free + chunk.aside > 0 {
            return;
        }
        self.chunks.remove(&chunk_id);
        if chunk.suspect {
            // What else is in it, and when that expires, is not known here any more.
            self.expect(Expiry::PAST);
        }
    }

    /// All chunks are claimed anew, each once nothing of it is under way: vouchers may have been taken out, or less validity
    /// will do than what was claimed for, since the clock was set back or an operator changed the product.
    pub fn doubt_all(&mut self) {
        self.doubted = true;
        self.free.clear();
        self.chunks.retain(|_, chunk| chunk.aside > 0);
        for chunk in self.chunks.values_mut() {
            chunk.free = 0;
            chunk.suspect = true;
        }
        self.floor = Expiry::PAST;
        self.expect(Expiry::PAST);
    }

    fn drop_lapsed(&mut self, not_before: Expiry) {
        for place in self.free.take_lapsed(not_before) {
            self.chunk(place.chunk_id, |chunk| chunk.free -= 1);
            self.forget_if_done(place.chunk_id);
        }
    }

    fn chunk(&mut self, chunk_id: ChunkId, change: impl FnOnce(&mut Chunk)) {
        if let Some(chunk) = self.chunks.get_mut(&chunk_id) {
            change(chunk);
        }
    }
}

impl Chunk {
    /// Where a voucher of it has its place.
    fn place(&self, voucher: &Shelved) -> Place {
        let offset = u32::try_from(voucher.stock_id.0 - self.first.0);
        assert!(offset.is_ok(), "a voucher is not in the range of its chunk");
        Place {
            expiry: voucher.expiry,
            chunk_id: voucher.chunk_id,
            offset: offset.unwrap_or_default(),
        }
    }

    /// Which voucher has this place in it.
    fn voucher(&self, place: Place) -> Shelved {
        Shelved {
            expiry: place.expiry,
            chunk_id: place.chunk_id,
            stock_id: StockId(self.first.0 + i64::from(place.offset)),
        }
    }
}

fn earlier(one: Option<Expiry>, other: Option<Expiry>) -> Option<Expiry> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests;
