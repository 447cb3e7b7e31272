//! Guards of commits and flushes, each removable so that a test can show that its absence is detected.
//!
//! Names are those of the guards in the statements of Postgres; see `conformance::GUARDS`.

use strum::{EnumString, VariantArray};

/// A check of a commit or of a flush. Its text is its name in `conformance::GUARDS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Guard {
    /// A batch of an older generation of its lane writes nothing.
    Lane,
    /// The batch number is written to the lane's row.
    LaneBatch,
    /// Only the newest incarnation of a node recovers its lanes.
    Incarnation,
    /// A known key is not overwritten.
    Key,
    /// An expired key can be claimed again.
    KeyExpiry,
    /// A key without expiry never expires.
    KeyForever,
    /// An order changes only from the state on which the change was decided.
    OrderMoved,
    /// A voucher whose code was retrieved does not return to stock.
    Retrieved,
    /// A payout is decided once.
    PayoutPending,
    /// No wallet falls below zero.
    Balance,
    /// Debits of earlier records in the batch count.
    RunningBalance,
    /// The chunk belongs to this node.
    ChunkNode,
    /// The chunk was claimed by this incarnation of the node.
    ChunkIncarnation,
    /// The chunk's owner does not change before the commit ends.
    ChunkLock,
    /// A voucher has one holder.
    Voucher,
    /// No cap of a partner is exceeded.
    Cap,
    /// What earlier records of the batch add counts against a cap.
    RunningCap,
    /// A stale record releases its key.
    GiveBackKey,
    /// A stale record releases its vouchers.
    GiveBackVouchers,
    /// A flush under an earlier lease writes nothing.
    Lease,
    /// A flush by another process than the lease's holder writes nothing.
    LeaseOwner,
    /// A flush under a lease of another history writes nothing.
    DeliveryHistory,
    /// A flush does not move the cursor beyond the feed, which may have lost events.
    LostEvents,
    /// A delivery that was replayed since it was read stays as the replay left it.
    Replays,
}
