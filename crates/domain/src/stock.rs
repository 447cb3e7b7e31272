//! Stock claims: what an inventory actor requests from the store, and what it gets.

pub mod level;

use std::collections::HashMap;
use std::time::Duration;

use super::ids::{ChunkId, StockId};
use super::product::Sku;
use super::voucher::Expiry;

/// Free vouchers by SKU, each count capped at the product's `low_stock_at`.
pub type FreeVouchers = HashMap<Sku, u32>;

/// Maximum number of vouchers in a chunk.
pub const CHUNK_VOUCHERS: usize = 500;

/// A request for stock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockRequest {
    pub sku: Sku,
    /// Chunks in the actor's memory; the store does not return them again.
    pub loaded_chunks: Vec<ChunkId>,
    /// The number of vouchers after which the store stops claiming chunks. While no other node is live, it
    /// stops after [`CHUNK_VOUCHERS`] at the earliest.
    pub target_quantity: usize,
    /// Vouchers that expire earlier are left out.
    pub not_before: Expiry,
    /// Vouchers that waiting requests lack. If other nodes own all stock, they are asked to release as many;
    /// stock that they do not release for [`TAKEOVER_DELAY`] is taken over. 0: no request waits.
    pub demanded: usize,
}

/// How long nodes are asked to release stock before it is taken from them. The commit of the former owner
/// rejects what it sells of it.
pub const TAKEOVER_DELAY: Duration = Duration::from_millis(600);

/// How long a demand counts after its last renewal. A node with waiting requests renews its demand 20 times a
/// second, or less often if it demands thousands of SKUs or the database is slow: that must not make the
/// demand new again, since its takeover would never come. The demand of a node that died holds other nodes
/// off for as long.
pub const DEMAND_VALIDITY: Duration = Duration::from_secs(3);

/// Stock of a SKU that another node needs and this node owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockDemand {
    pub sku: Sku,
    pub quantity: usize,
}

/// A claimed chunk with its free vouchers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedChunk {
    pub chunk_id: ChunkId,
    pub vouchers: Vec<(StockId, Expiry)>,
}

/// The result of a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimedStock {
    /// Chunks that this node owns now.
    pub chunks: Vec<ClaimedChunk>,
    /// The earliest expiry in a chunk that could still be claimed; `None` if there is no such chunk.
    pub next_expiry: Option<Expiry>,
    /// Free vouchers that this node cannot claim now. Known only if the claim brought nothing.
    pub unclaimable: UnclaimableStock,
}

/// Free vouchers of a SKU that a node cannot claim now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnclaimableStock {
    #[default]
    None,
    /// Owned by other live nodes.
    OwnedByOtherNode,
    /// Reserved for orders that wait for the SKU. What those orders leave is released soon.
    Reserved,
    /// Perhaps sold on a lost timeline of the database. An operator releases it.
    Quarantined,
}
