//! What one decision makes durable, and what the commit says to it.
//!
//! Rule: a record is whole or not there. Its parts are plain data that map onto the arrays of one statement, so that a
//! lane writes hundreds of records in one round trip; a flow that needs another part adds it here and to the statement.

use crate::domain::answer::{Answer, Fingerprint, Keep, KeyHash, KnownAnswer};
use crate::domain::event::EventBundle;
use crate::domain::ids::PartnerId;
use crate::domain::ledger::{Movement, Receipt};
use crate::domain::order::Order;

/// A claim on an idempotency key, with the answer that is kept under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyClaim {
    /// The key.
    pub key: KeyHash,
    /// Of the request that is answered.
    pub fingerprint: Fingerprint,
    /// What is answered, once the record is committed.
    pub answer: Answer,
    /// For how long.
    pub keep: Keep,
}

/// Everything one decision writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Whose record it is; also what picks the lane.
    pub partner_id: PartnerId,
    /// The key it answers, and by which a lost outcome is found again.
    pub claim: KeyClaim,
    /// A new order, with the vouchers it holds.
    pub order: Option<Order>,
    /// Money that moves.
    pub movement: Option<Movement>,
    /// What the partner is told.
    pub events: Option<EventBundle>,
}

impl Record {
    /// How many voucher rows it writes.
    #[must_use]
    pub fn vouchers(&self) -> usize {
        self.order.as_ref().map_or(0, |order| order.vouchers.len())
    }
}

/// What the commit says to one record of a batch that committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is durable; with the newest state of the wallet that it moved money in.
    Committed(Option<Receipt>),
    /// Not written: its key was known, with this answer.
    KeyKnown(KnownAnswer),
    /// Not written: what it was decided on is no longer so.
    Stale(Stale),
}

/// What a decision rested on and no longer held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stale {
    /// The wallet holds less than was thought.
    Balance,
    /// A voucher is gone, or its chunk belongs to somebody else.
    Stock,
    /// Nothing: its key was known, and purged before its answer could be read.
    KeyPurged,
    /// The balance or the stock, and nobody can tell which.
    Unclear,
}

impl Stale {
    /// Whether the wallet may hold less than was thought.
    #[must_use]
    pub const fn doubts_balance(self) -> bool {
        matches!(self, Self::Balance | Self::Unclear)
    }

    /// Whether a voucher may be gone.
    #[must_use]
    pub const fn doubts_stock(self) -> bool {
        matches!(self, Self::Stock | Self::Unclear)
    }
}
