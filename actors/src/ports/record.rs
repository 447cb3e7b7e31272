//! Records: everything one decision writes, and the verdict that the commit returns.
//!
//! A record is written completely or not at all. Its parts are plain data that map to the arrays of one
//! statement, so a lane writes hundreds of records in one round trip. A new part is added here and to the
//! statement.

use vouchsafe_domain::audit::AuditEntry;
use vouchsafe_domain::cap::CapCheck;
use vouchsafe_domain::event::EventBundle;
use vouchsafe_domain::idempotency::{Fingerprint, KeyHash, Response, Retention, StoredResponse};
use vouchsafe_domain::ids::{OrderId, PartnerId, StockId};
use vouchsafe_domain::ledger::{Movement, PendingDelta, WalletKey, WalletState};
use vouchsafe_domain::order::Order;
use vouchsafe_domain::payout::Payout;
use vouchsafe_domain::voucher::Allocation;

/// An idempotency key with the response to store under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyClaim {
    pub key: KeyHash,
    /// The fingerprint of the request.
    pub fingerprint: Fingerprint,
    /// The response, valid once the record is committed.
    pub response: Response,
    pub retention: Retention,
}

/// A change of an existing order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderChange {
    /// The order after the change.
    pub after: Order,
    /// Sequence number of the order's last event when the change was decided. If the commit finds another, it
    /// writes nothing.
    pub expected_sequence: u32,
    /// Vouchers allocated to the order.
    pub issued: Vec<Allocation>,
    /// Vouchers taken back. If the commit finds that a code of them was retrieved, it writes nothing.
    pub returned: Vec<ReturnedVoucher>,
}

/// A voucher that returns to stock: the row it was sold from stays sold, and its code gets a new row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReturnedVoucher {
    /// The allocation that ends.
    pub allocation: Allocation,
    pub stock_id: StockId,
    /// Id of the first row of its new chunk.
    pub chunk_first_id: StockId,
}

/// A new or changed payout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayoutChange {
    Requested(Payout),
    /// Decided by an operator. If the commit does not find it pending, it writes nothing.
    Decided(Payout),
}

/// Everything one decision writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The partner; also determines the lane.
    pub partner_id: PartnerId,
    /// The idempotency key; also finds an outcome that was lost.
    pub claim: KeyClaim,
    /// A new order with its vouchers.
    pub order: Option<Order>,
    /// A change of an existing order.
    pub change: Option<OrderChange>,
    pub movement: Option<Movement>,
    /// Change of the wallet's pending amounts.
    pub pending_delta: Option<PendingDelta>,
    pub payout: Option<PayoutChange>,
    pub events: Option<EventBundle>,
    /// The operator's decision, for the audit log.
    pub audit_entry: Option<AuditEntry>,
    /// The partner's caps that it must not exceed. If the commit finds that one is exceeded, it writes
    /// nothing.
    pub caps: Vec<CapCheck>,
}

impl Record {
    /// Creates a record that stores a response only; the flow adds the other parts.
    #[must_use]
    pub const fn new(partner_id: PartnerId, claim: KeyClaim) -> Self {
        Self {
            partner_id,
            claim,
            order: None,
            change: None,
            movement: None,
            pending_delta: None,
            payout: None,
            events: None,
            audit_entry: None,
            caps: Vec::new(),
        }
    }

    /// The vouchers that it allocates, with their orders.
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
    pub fn returned(&self) -> impl Iterator<Item = &ReturnedVoucher> {
        self.change.iter().flat_map(|change| &change.returned)
    }

    /// The wallet that it changes, if any.
    #[must_use]
    pub fn wallet(&self) -> Option<WalletKey> {
        let posted = self.movement.as_ref().map(|movement| movement.currency);
        let currency = posted.or(self.pending_delta.map(|shift| shift.currency))?;
        Some(WalletKey {
            partner_id: self.partner_id,
            currency,
        })
    }

    /// The number of voucher rows that it writes.
    #[must_use]
    pub fn voucher_count(&self) -> usize {
        self.issued().count() + self.returned().count()
    }
}

/// The verdict on one record of a committed batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Committed, with the newest state of the wallet that it posted to.
    Committed(Option<WalletState>),
    /// Not written: the key already had this response.
    KeyKnown(StoredResponse),
    /// Not written: the state that it was decided on has changed.
    Stale(StaleReason),
}

impl Verdict {
    /// The verdict's label in traces.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Self::Committed(_) => "committed",
            Self::KeyKnown(_) => "key_known",
            Self::Stale(_) => "stale",
        }
    }
}

/// What a decision was based on that has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaleReason {
    /// The wallet holds less than expected.
    Balance,
    /// A voucher was sold, or its chunk belongs to another node.
    Stock,
    /// The order or payout has changed, or a code was retrieved.
    StateChanged,
    /// A cap of the partner would be exceeded.
    Cap,
    /// Nothing: the key was known, but its response was purged before it could be read.
    KeyPurged,
    /// Balance or stock; the commit cannot tell which.
    Unclear,
}

impl StaleReason {
    /// Whether the wallet may hold less than expected.
    #[must_use]
    pub const fn is_balance_suspect(self) -> bool {
        matches!(self, Self::Balance | Self::Unclear)
    }

    /// Whether a voucher may be unavailable.
    #[must_use]
    pub const fn is_stock_suspect(self) -> bool {
        matches!(self, Self::Stock | Self::Unclear)
    }
}
