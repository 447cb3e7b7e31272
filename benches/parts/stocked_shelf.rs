//! Claims of one chunk for a shelf.

use vouchsafe_actors::inventory::shelf::Shelf;
use vouchsafe_domain::ids::{ChunkId, StockId};
use vouchsafe_domain::stock::{ClaimedChunk, ClaimedStock, UnclaimableStock};
use vouchsafe_domain::voucher::Expiry;

/// Vouchers per chunk, as in an import.
pub(crate) const CHUNK: i64 = 500;

/// Adds a chunk of `size` vouchers; `expiry` maps a voucher's number to its expiry.
pub(crate) fn add_chunk(shelf: &mut Shelf, id: i64, size: i64, expiry: impl Fn(i64) -> Expiry) {
    let numbers = (0..size).map(|n| id * CHUNK + n);
    let chunk = ClaimedChunk {
        chunk_id: ChunkId(id),
        vouchers: numbers.map(|number| (StockId(number), expiry(number))).collect(),
    };
    let claimed = ClaimedStock {
        chunks: vec![chunk],
        next_expiry: None,
        unclaimable: UnclaimableStock::None,
    };
    shelf.start_claim();
    shelf.add_claimed(&claimed, Expiry::PAST);
}
