//! Response body and filters of `GET /transactions`.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::ids::{OrderId, PayoutId, TransactionId};
use vouchsafe_domain::ledger::LedgerKind;
use vouchsafe_domain::ledger::transaction::{Transaction, TransactionFilter};
use vouchsafe_domain::money::{Currency, Money};

use crate::error_body::InvalidRequest;
use crate::page::PageRequest;
use crate::period;

pub const FILTERS: [&str; 5] = ["from", "to", "order_id", "type", "currency"];

/// Parses the filters.
///
/// # Errors
/// `VALIDATION_FAILED` for a value that does not parse.
pub fn parse_filter(page: &PageRequest) -> Result<TransactionFilter, InvalidRequest> {
    Ok(TransactionFilter {
        period: period::from_page(page)?,
        order_id: page.parsed_filter("order_id")?,
        kind: page.enum_filter("type", &LedgerKind::ALL, LedgerKind::as_str)?,
        currency: page.parsed_filter("currency")?,
    })
}

/// A ledger entry of a wallet.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Transaction)]
pub struct TransactionBody {
    /// Identifies the transaction.
    transaction_id: TransactionId,
    /// What the transaction is for.
    #[serde(rename = "type")]
    kind: LedgerKind,
    /// Amount: positive for a credit, negative for a debit.
    amount: Money,
    /// Currency of the wallet.
    currency: Currency,
    /// Balance of the wallet after this transaction.
    balance_after: Money,
    /// Number of the transaction within its wallet, from 1 without gaps.
    #[schema(minimum = 1)]
    sequence: i64,
    /// Order that the transaction belongs to.
    #[schema(required)]
    order_id: Option<OrderId>,
    /// Payout that the transaction belongs to.
    #[schema(required)]
    payout_id: Option<PayoutId>,
    /// Reference of the order, payout or posting.
    #[schema(required)]
    reference: Option<String>,
    /// When the transaction was posted.
    #[serde(with = "vouchsafe_domain::timestamp")]
    created_at: OffsetDateTime,
}

impl From<Transaction> for TransactionBody {
    fn from(entry: Transaction) -> Self {
        Self {
            transaction_id: entry.transaction_id,
            kind: entry.kind,
            amount: entry.amount.of(entry.currency),
            currency: entry.currency,
            balance_after: entry.balance_after.of(entry.currency),
            sequence: entry.sequence,
            order_id: entry.order_id,
            payout_id: entry.payout_id.map(PayoutId::from_uuid),
            reference: entry.reference,
            created_at: entry.created_at,
        }
    }
}
