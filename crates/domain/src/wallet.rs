//! Wallets of partners: balance and pending amounts.

use serde::Serialize;
use time::OffsetDateTime;

use crate::money::{Currency, Money};

/// The balance in one currency.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct Wallet {
    /// Currency of the wallet.
    pub currency: Currency,
    /// Amount that can be spent now.
    pub balance: Money,
    /// Amount debited for orders that are not delivered yet.
    pub pending_orders: Money,
    /// Amount debited for payouts that are not paid yet.
    pub pending_payouts: Money,
    /// When the balance last changed.
    #[serde(with = "crate::timestamp")]
    pub updated_at: OffsetDateTime,
}
