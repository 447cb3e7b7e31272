//! Money that moves: an entry in a wallet's ledger ("transaction" on the wire).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ids::{OrderId, PartnerId, PayoutId, TransactionId};
use super::money::{Amount, Currency};

/// Why money moved (contract §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(
    description = "Why money moved: `TOP_UP` (an operator added money), `DEBIT` (an order was paid), `REFUND` (an \
    order, or a part of it, was paid back), `PAYOUT` (money left for a payout), `PAYOUT_REVERSAL` (a payout did not \
    happen), `ADJUSTMENT` (an operator corrected the balance)."
)]
pub enum LedgerKind {
    /// An operator added money.
    TopUp,
    /// An order was paid.
    Debit,
    /// An order, or a part of it, was paid back.
    Refund,
    /// Money left for a payout.
    Payout,
    /// A payout did not happen.
    PayoutReversal,
    /// An operator corrected the balance.
    Adjustment,
}

impl LedgerKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::TopUp,
        Self::Debit,
        Self::Refund,
        Self::Payout,
        Self::PayoutReversal,
        Self::Adjustment,
    ];

    /// The word on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TopUp => "TOP_UP",
            Self::Debit => "DEBIT",
            Self::Refund => "REFUND",
            Self::Payout => "PAYOUT",
            Self::PayoutReversal => "PAYOUT_REVERSAL",
            Self::Adjustment => "ADJUSTMENT",
        }
    }

    /// The kind of this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// A wallet: the balance of one partner in one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WalletKey {
    pub partner_id: PartnerId,
    pub currency: Currency,
}

/// One movement of money, as a flow asks for it; the commit gives it its sequence and the balance after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Movement {
    pub transaction_id: TransactionId,
    pub currency: Currency,
    pub kind: LedgerKind,
    /// By how much the balance changes: negative for a debit. Minor units.
    pub amount: Amount,
    /// The order it is for.
    pub order_id: Option<OrderId>,
    /// The payout it is for.
    pub payout_id: Option<PayoutId>,
    /// The operator's or partner's own reference.
    pub reference: Option<String>,
    /// Who booked it by hand; the trail of operators is told in the same commit. `None` where a flow did.
    pub booked_by: Option<BookedBy>,
}

/// What was taken from a wallet and is not settled yet, and by how much that changes. Minor units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingShift {
    pub currency: Currency,
    /// What was debited for vouchers that are not delivered.
    pub orders: Amount,
    /// What left for payouts that are not paid.
    pub payouts: Amount,
}

/// An operator who moves money or decides, and the request that said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookedBy {
    pub operator: String,
    /// In which request; `None` outside of one.
    pub trace_id: Option<String>,
}

/// What a commit says of a wallet: its newest balance, with the number of its last ledger entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// The number of the wallet's newest ledger entry; an older receipt is ignored.
    pub sequence: i64,
    /// What the wallet holds after it, in minor units.
    pub balance: Amount,
}

impl Receipt {
    /// A wallet in which nothing was ever booked.
    pub const EMPTY: Self = Self {
        sequence: 0,
        balance: Amount::ZERO,
    };
}
