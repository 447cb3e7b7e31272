//! Response body of `GET /wallets`.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::money::{Currency, Money};
use vouchsafe_domain::wallet::Wallet;

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
    pub fn of(wallet: Wallet) -> Self {
        Self {
            currency: wallet.currency,
            balance: wallet.balance.of(wallet.currency),
            pending_orders: wallet.pending_orders.of(wallet.currency),
            pending_payouts: wallet.pending_payouts.of(wallet.currency),
            updated_at: wallet.updated_at,
        }
    }
}
