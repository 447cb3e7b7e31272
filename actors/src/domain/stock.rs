//! Stock on its way to a shelf: what an inventory actor asks for, and what a claim brings.

use super::ids::{ChunkId, StockId};
use super::product::Sku;
use super::voucher::Expiry;

/// How many vouchers a chunk holds at most.
pub const CHUNK_VOUCHERS: usize = 500;

/// What an inventory actor asks for when its shelf runs low.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockRequest {
    pub sku: Sku,
    /// Chunks that it holds in memory, so that they are not handed out again.
    pub loaded: Vec<ChunkId>,
    /// How many vouchers would be enough.
    pub enough: usize,
    /// Vouchers that expire earlier are left out.
    pub not_before: Expiry,
}

/// A chunk that was claimed: the vouchers in it that are free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedChunk {
    pub chunk_id: ChunkId,
    pub vouchers: Vec<(StockId, Expiry)>,
}

/// What a claim brought.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimedStock {
    /// The chunks that this node owns now.
    pub chunks: Vec<ClaimedChunk>,
    /// The earliest expiry in a chunk that could still be claimed; `None` when there is no such chunk.
    pub next: Option<Expiry>,
    /// Where there is something to sell that this node cannot claim now. Known only where it got nothing.
    pub elsewhere: Elsewhere,
}

/// Where there are free vouchers of a SKU that a node cannot claim now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Elsewhere {
    #[default]
    Nowhere,
    /// Another live node owns them.
    Owned,
    /// They are kept for whoever waits for the SKU, and some may be left when those were served, which is soon.
    Kept,
}
