//! What one decision makes durable, and what the commit says to it.
//!
//! Rule: a record is whole or not there. Its parts are plain data that map onto the arrays of one statement, so that a
//! lane writes hundreds of records in one round trip; a flow that needs another part adds it here and to the statement.

use crate::domain::answer::{Answer, Fingerprint, Keep, KeyHash, KnownAnswer};
use crate::domain::deed::Deed;
use crate::domain::event::EventBundle;
use crate::domain::ids::{OrderId, PartnerId, StockId};
use crate::domain::ledger::{Movement, PendingShift, Receipt, WalletKey};
use crate::domain::order::Order;
use crate::domain::payout::Payout;
use crate::domain::voucher::Allocation;

/// A claim on an idempotency key, with the answer that is kept under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyClaim {
    pub key: KeyHash,
    /// Of the request that is answered.
    pub fingerprint: Fingerprint,
    /// What is answered, once the record is committed.
    pub answer: Answer,
    pub keep: Keep,
}

/// An order that moves on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderChange {
    /// The order after it.
    pub after: Order,
    /// The number of its last event when it was decided on. The commit finds the same, or nothing is written.
    pub since: u32,
    /// The vouchers that it gets.
    pub issued: Vec<Allocation>,
    /// The vouchers that leave it. The commit finds no code of them retrieved, or nothing is written.
    pub returned: Vec<Return>,
}

/// A voucher that comes back: the row it was sold from stays sold, and its code gets a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Return {
    /// The voucher as the order held it.
    pub allocation: Allocation,
    pub stock_id: StockId,
    /// The first row of the new chunk that this one lies in.
    pub chunk_begins: StockId,
}

/// What becomes of a payout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayoutChange {
    Requested(Payout),
    /// It was decided on. The commit finds it pending, or nothing is written.
    Decided(Payout),
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
    /// An order that moves on.
    pub change: Option<OrderChange>,
    pub movement: Option<Movement>,
    /// What of the wallet's money waits for something else than before.
    pub pending: Option<PendingShift>,
    pub payout: Option<PayoutChange>,
    /// What the partner is told.
    pub events: Option<EventBundle>,
    /// The operator's decision behind it, for the trail.
    pub deed: Option<Deed>,
}

impl Record {
    /// A record that writes its answer alone; a flow adds to it.
    #[must_use]
    pub const fn answering(partner_id: PartnerId, claim: KeyClaim) -> Self {
        Self {
            partner_id,
            claim,
            order: None,
            change: None,
            movement: None,
            pending: None,
            payout: None,
            events: None,
            deed: None,
        }
    }

    /// The vouchers that it allocates, with the order that gets them.
    pub fn issued(&self) -> impl Iterator<Item = (OrderId, &Allocation)> {
        let new = self.order.iter().map(|order| (order.order_id, &order.vouchers));
        let change = self
            .change
            .iter()
            .map(|change| (change.after.order_id, &change.issued));
        new.chain(change)
            .flat_map(|(order_id, vouchers)| vouchers.iter().map(move |allocation| (order_id, allocation)))
    }

    /// The vouchers that it takes back.
    pub fn returned(&self) -> impl Iterator<Item = &Return> {
        self.change.iter().flat_map(|change| &change.returned)
    }

    /// The wallet that it changes, if it changes one.
    #[must_use]
    pub fn wallet(&self) -> Option<WalletKey> {
        let moved = self.movement.as_ref().map(|movement| movement.currency);
        let currency = moved.or(self.pending.map(|shift| shift.currency))?;
        Some(WalletKey {
            partner_id: self.partner_id,
            currency,
        })
    }

    /// How many voucher rows it writes.
    #[must_use]
    pub fn vouchers(&self) -> usize {
        self.issued().count() + self.returned().count()
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

impl Verdict {
    /// In one word.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Committed(_) => "committed",
            Self::KeyKnown(_) => "key_known",
            Self::Stale(_) => "stale",
        }
    }
}

/// What a decision rested on and no longer held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stale {
    /// The wallet holds less than was thought.
    Balance,
    /// A voucher is gone, or its chunk belongs to somebody else.
    Stock,
    /// The order, the payout, or what was retrieved of it, is not what it was.
    Moved,
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
