//! Ledger entry and filter of ledger lists. The API calls ledger entries "transactions".

use time::OffsetDateTime;
use uuid::Uuid;

use super::LedgerKind;
use crate::ids::{OrderId, TransactionId};
use crate::money::{Amount, Currency};
use crate::period::Period;

/// A ledger entry. Amounts in minor units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    pub transaction_id: TransactionId,
    pub kind: LedgerKind,
    /// Change of the balance; negative for a debit.
    pub amount: Amount,
    pub currency: Currency,
    pub balance_after: Amount,
    /// Number within the wallet, from 1 without gaps.
    pub sequence: i64,
    pub order_id: Option<OrderId>,
    pub payout_id: Option<Uuid>,
    /// Reference of the operator or the partner.
    pub reference: Option<String>,
    pub created_at: OffsetDateTime,
}

/// Filter of ledger entries; `None` matches any.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransactionFilter {
    /// Time of posting.
    pub period: Period,
    pub order_id: Option<OrderId>,
    pub kind: Option<LedgerKind>,
    pub currency: Option<Currency>,
}
