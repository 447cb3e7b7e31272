//! Guards of the commit, each removable so that a test can show that its absence is detected.
//!
//! Names are those of the guards in the commit statement of Postgres; see `conformance::GUARDS`.

/// A check between a decision and its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// A stale record releases its key.
    GiveBackKey,
    /// A stale record releases its vouchers.
    GiveBackVouchers,
}

impl Guard {
    pub const ALL: [Self; 17] = [
        Self::Lane,
        Self::LaneBatch,
        Self::Incarnation,
        Self::Key,
        Self::KeyExpiry,
        Self::KeyForever,
        Self::OrderMoved,
        Self::Retrieved,
        Self::PayoutPending,
        Self::Balance,
        Self::RunningBalance,
        Self::ChunkNode,
        Self::ChunkIncarnation,
        Self::ChunkLock,
        Self::Voucher,
        Self::GiveBackKey,
        Self::GiveBackVouchers,
    ];

    /// Name in `conformance::GUARDS`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lane => "lane",
            Self::LaneBatch => "lane-batch",
            Self::Incarnation => "incarnation",
            Self::Key => "key",
            Self::KeyExpiry => "key-expiry",
            Self::KeyForever => "key-forever",
            Self::OrderMoved => "order-moved",
            Self::Retrieved => "retrieved",
            Self::PayoutPending => "payout-pending",
            Self::Balance => "balance",
            Self::RunningBalance => "running-balance",
            Self::ChunkNode => "chunk-node",
            Self::ChunkIncarnation => "chunk-incarnation",
            Self::ChunkLock => "chunk-lock",
            Self::Voucher => "voucher",
            Self::GiveBackKey => "give-back-key",
            Self::GiveBackVouchers => "give-back-vouchers",
        }
    }

    /// Guard with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|guard| guard.as_str() == name)
    }
}
