//! Committed rows as tests read them back from a store: only what every store represents alike.

use vouchsafe_domain::event::EventBundle;
use vouchsafe_domain::idempotency::StoredResponse;
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::ledger::{Movement, WalletState};

/// Holder of a voucher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    Order(OrderId),
    /// An operator took the voucher out of sale.
    Void,
}

/// Row of the ledger: the requested movement and the wallet's state after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The entry's sequence number in the wallet and the balance after it.
    pub receipt: WalletState,
    pub movement: Movement,
}

/// Row of the idempotency keys, expired or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    pub known: StoredResponse,
    pub never_expires: bool,
}

/// Row of a partner's event feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedEntry {
    /// Number of the bundle's first event; the bundle occupies one number per event.
    pub number: i64,
    pub bundle: EventBundle,
}
