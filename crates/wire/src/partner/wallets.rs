//! Response body of `GET /wallets`.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::money::{Currency, Money};
use vouchsafe_domain::wallet::WalletRow;

/// The balance in one currency.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Wallet)]
pub struct WalletBody {
    /// Currency of the wallet.
    pub currency: Currency,
    /// Amount that can be spent now.
    balance: Money,
    /// Amount debited for orders that are not delivered yet.
    pending_orders: Money,
    /// Amount debited for payouts that are not paid yet.
    pending_payouts: Money,
    /// When the balance last changed.
    #[serde(with = "vouchsafe_domain::timestamp")]
    updated_at: OffsetDateTime,
}

impl WalletBody {
    #[must_use]
    pub fn of(row: WalletRow) -> Self {
        Self {
            currency: row.currency,
            balance: row.balance.of(row.currency),
            pending_orders: row.pending_orders.of(row.currency),
            pending_payouts: row.pending_payouts.of(row.currency),
            updated_at: row.updated_at,
        }
    }
}
