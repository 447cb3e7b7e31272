//! Committed rows as tests read them back from a store: only what every store represents alike.

use vouchsafe_domain::delivery::DeliveryAttempt;
use vouchsafe_domain::event::EventBundle;
use vouchsafe_domain::idempotency::StoredResponse;
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::ledger::{Movement, WalletState};
use vouchsafe_domain::money::Amount;

/// Holder of a voucher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    Order(OrderId),
    /// An operator took the voucher out of sale.
    Void,
}

/// Row of a wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredWallet {
    pub newest: WalletState,
    /// Amount debited for undelivered order lines.
    pub pending_orders: Amount,
    /// Amount debited for payouts that are not paid yet.
    pub pending_payouts: Amount,
}

impl Default for StoredWallet {
    fn default() -> Self {
        Self {
            newest: WalletState::EMPTY,
            pending_orders: Amount::ZERO,
            pending_payouts: Amount::ZERO,
        }
    }
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

/// State of a delivery that has a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowState {
    /// Waits for its next attempt.
    Waiting,
    /// Waits for an earlier delivery of its order.
    Blocked,
    Delivered,
    /// Its 24 hours are over.
    Failed,
}

/// Row of a delivery that failed, waits for a failed one, or is replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRow {
    pub state: RowState,
    pub attempts: u32,
    pub log: Vec<DeliveryAttempt>,
}

/// Status of a webhook endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointStatus {
    /// Every event up to this number is delivered or has a row.
    pub cursor: i64,
    pub failures: u32,
    /// Total successful attempts.
    pub delivered: u64,
    /// Total failed attempts.
    pub refused: u64,
    pub enabled: bool,
}
