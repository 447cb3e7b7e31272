//! What the commit verifies, each of it removable, so that a test can show that its absence is noticed.
//!
//! Rule: a guard here has the name of the one in the commit statement of Postgres; see `conformance::GUARDS`.

/// Something that is verified between a decision and its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guard {
    /// A batch of an older generation of its lane writes nothing.
    Lane,
    /// The batch leaves its number in the lane's row.
    LaneBatch,
    /// A lane is recovered by the newest start of its node alone.
    Incarnation,
    /// A key that is known is not written over.
    Key,
    /// A key whose time is over is free again.
    KeyExpiry,
    /// A key that is kept for ever has no end.
    KeyForever,
    /// An order moves on from where it was when that was decided.
    OrderMoved,
    /// A voucher whose code was retrieved does not come back.
    Retrieved,
    /// A payout is decided once.
    PayoutPending,
    /// No wallet falls below zero.
    Balance,
    /// What the records before it in the batch took is gone.
    RunningBalance,
    /// The chunk belongs to this node.
    ChunkNode,
    /// The chunk was claimed by this start of it.
    ChunkIncarnation,
    /// The chunk stays this node's until the commit is over.
    ChunkLock,
    /// A voucher has one holder.
    Voucher,
    /// A record that is stale leaves no key behind.
    GiveBackKey,
    /// A record that is stale leaves no voucher behind.
    GiveBackVouchers,
}

impl Guard {
    /// All guards.
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

    /// Its name in `conformance::GUARDS`.
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

    /// The guard of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|guard| guard.as_str() == name)
    }
}
