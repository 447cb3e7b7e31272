//! Ledger entry and filter of ledger lists. The API calls ledger entries "transactions".

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::LedgerKind;
use crate::ids::{OrderId, PayoutId, TransactionId};
use crate::money::{Currency, Money};
use crate::period::Period;

/// A ledger entry of a wallet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Transaction {
    /// Identifies the transaction.
    pub transaction_id: TransactionId,
    /// What the transaction is for.
    #[serde(rename = "type")]
    pub kind: LedgerKind,
    /// Amount: positive for a credit, negative for a debit.
    pub amount: Money,
    /// Currency of the wallet.
    pub currency: Currency,
    /// Balance of the wallet after this transaction.
    pub balance_after: Money,
    /// Number of the transaction within its wallet, from 1 without gaps.
    #[schema(minimum = 1)]
    pub sequence: i64,
    /// Order that the transaction belongs to.
    #[schema(required)]
    pub order_id: Option<OrderId>,
    /// Payout that the transaction belongs to.
    #[schema(required)]
    pub payout_id: Option<PayoutId>,
    /// Reference of the order, payout or posting.
    #[schema(required)]
    pub reference: Option<String>,
    /// When the transaction was posted.
    #[serde(with = "crate::timestamp")]
    pub created_at: OffsetDateTime,
}

/// Filter of ledger entries; `None` matches any.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, utoipa::IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct TransactionFilter {
    /// Time of posting.
    #[serde(flatten)]
    #[param(ignore)]
    #[command(flatten)]
    pub period: Period,
    /// Filter by order.
    #[param(inline)]
    #[arg(long = "order", value_name = "ORDER_ID")]
    pub order_id: Option<OrderId>,
    /// Filter by type.
    #[serde(rename = "type")]
    #[param(inline)]
    #[arg(long = "type", value_parser = crate::arguments::enum_parser::<LedgerKind>())]
    pub kind: Option<LedgerKind>,
    /// Filter by currency.
    #[param(value_type = Option<crate::text_schema::CurrencyFilter>, inline)]
    #[arg(long)]
    pub currency: Option<Currency>,
}
