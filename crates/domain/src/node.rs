//! Nodes of a deployment and lanes of a node, as operators see them.

use serde::Serialize;
use time::OffsetDateTime;

/// A node: a process with a name that stays the same across its restarts.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = Node)]
pub struct NodeRow {
    /// Name of the node.
    pub node: String,
    /// Number of starts of the node.
    pub incarnation: i64,
    /// Version of the program.
    pub version: String,
    /// Last migration of the program, which it needs; `null` for a version that does not report it. A
    /// migration that removes something waits for nodes of earlier programs.
    #[schema(required)]
    pub migration: Option<i64>,
    /// Time of the last start.
    #[serde(with = "crate::timestamp")]
    pub started_at: OffsetDateTime,
    /// Whether the lease is valid. Without a lease, other nodes take over the stock of the node.
    pub is_live: bool,
    /// Time of the last renewal of the lease.
    #[serde(with = "crate::timestamp")]
    pub renewed_at: OffsetDateTime,
    /// End of the lease.
    #[serde(with = "crate::timestamp")]
    pub lease_until: OffsetDateTime,
    /// Number of SKUs of which the node has claimed stock.
    pub claimed_skus: i64,
    /// Number of chunks of stock that the node has claimed.
    pub claimed_chunks: i64,
}

/// A lane of the node that responds: a queue of records that are committed in batches.
#[derive(Debug, Clone, Copy, Serialize, utoipa::ToSchema)]
#[schema(as = Lane)]
pub struct LaneBody {
    /// Number of the lane, from 0.
    pub lane: usize,
    /// Records between decision and verdict.
    pub in_flight: usize,
    /// Records that wait for the end of the commit in flight.
    pub queued: usize,
    /// Batches since the process started.
    pub batches: u64,
    /// Number of records in the last batch.
    pub last_batch_records: usize,
    /// Duration of the last commit in microseconds.
    pub last_commit_us: u64,
    /// Whether the lane can commit. If not, the node is not ready and refuses orders with 503.
    pub can_commit: bool,
}
