//! Wallet ledger: entries ("transactions" on the wire), balances and pending amounts.

pub mod cursor;
pub mod transaction;

use super::audit_log::AuditActor;
use super::ids::{OrderId, PartnerId, PayoutId, TransactionId};
use super::money::{Amount, Currency};
use crate::labels::labels;

labels! {
    /// The kind of a ledger entry (contract §3).
    pub enum LedgerKind: "SCREAMING_SNAKE_CASE",
        "Kind of transaction: `TOP_UP` (an operator added money), `DEBIT` (an order was paid), `REFUND` (an \
         order was refunded in full or in part), `PAYOUT` (money was paid out), `PAYOUT_REVERSAL` (a payout was rejected or \
         failed), `ADJUSTMENT` (an operator corrected the balance)." {
        /// An operator added money.
        TopUp,
        /// An order was paid.
        Debit,
        /// An order was refunded in full or in part.
        Refund,
        /// Money was paid out.
        Payout,
        /// A payout was rejected or failed.
        PayoutReversal,
        /// An operator corrected the balance.
        Adjustment,
    }
}

/// Identifies a wallet: the balance of one partner in one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WalletKey {
    pub partner_id: PartnerId,
    pub currency: Currency,
}

/// A ledger entry that a flow requests. The commit assigns its sequence number and the balance after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Movement {
    pub transaction_id: TransactionId,
    pub currency: Currency,
    pub kind: LedgerKind,
    /// The change of the balance, negative for a debit. Minor units.
    pub amount: Amount,
    /// The order that it pays or refunds.
    pub order_id: Option<OrderId>,
    /// The payout that it funds or reverses.
    pub payout_id: Option<PayoutId>,
    /// The operator's or partner's reference.
    pub reference: Option<String>,
    /// The operator who posted it; the commit then writes an audit entry too. `None` for entries posted by a
    /// flow.
    pub booked_by: Option<AuditActor>,
}

/// The change of a wallet's pending amounts. Minor units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingDelta {
    pub currency: Currency,
    /// Debited for vouchers that are not delivered yet.
    pub orders: Amount,
    /// Debited for payouts that are not paid yet.
    pub payouts: Amount,
}

/// The newest committed state of a wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalletState {
    /// Sequence number of the wallet's newest ledger entry. A state with a lower number is ignored.
    pub sequence: i64,
    /// The balance after that entry, in minor units.
    pub balance: Amount,
}

impl WalletState {
    /// A wallet without ledger entries.
    pub const EMPTY: Self = Self {
        sequence: 0,
        balance: Amount::ZERO,
    };
}
