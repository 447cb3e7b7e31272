//! Wallets of partners: balance and pending amounts.

use time::OffsetDateTime;

use crate::money::{Amount, Currency};

/// A wallet. Amounts in minor units.
#[derive(Debug, Clone)]
pub struct Wallet {
    pub currency: Currency,
    /// Available amount.
    pub balance: Amount,
    /// Debited for units of orders that are not delivered yet.
    pub pending_orders: Amount,
    /// Debited for payouts that are not paid yet.
    pub pending_payouts: Amount,
    pub updated_at: OffsetDateTime,
}
