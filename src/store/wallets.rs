//! Wallets: the newest state of each, for the engine and for partners.

use sqlx::PgPool;
use time::OffsetDateTime;
use vouchsafe_actors::domain::ids::PartnerId;
use vouchsafe_actors::domain::ledger::Receipt;
use vouchsafe_actors::domain::money::{Amount, Currency};

use super::PgStore;

/// A wallet as its owner sees it. Amounts in minor units.
#[derive(Debug, Clone)]
pub struct WalletRow {
    /// In what.
    pub currency: Currency,
    /// What can be spent.
    pub balance: Amount,
    /// What was debited for orders not yet delivered.
    pub pending_orders: Amount,
    /// What was debited for payouts not yet paid.
    pub pending_payouts: Amount,
    /// When money last moved.
    pub updated_at: OffsetDateTime,
}

impl PgStore {
    /// The wallets of a partner, by currency.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_wallets(&self, partner_id: PartnerId) -> Result<Vec<WalletRow>, sqlx::Error> {
        self.run(move |pool| async move { list(&pool, partner_id).await })
            .await
    }
}

async fn list(pool: &PgPool, partner_id: PartnerId) -> Result<Vec<WalletRow>, sqlx::Error> {
    let rows: Vec<(String, i64, i64, i64, OffsetDateTime)> = sqlx::query_as(
        "SELECT currency, balance, pending_orders, pending_payouts, updated_at
           FROM wallets
          WHERE partner_id = $1
          ORDER BY currency",
    )
    .bind(partner_id.as_uuid())
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(
            |(currency, balance, pending_orders, pending_payouts, updated_at)| {
                Ok(WalletRow {
                    currency: parse_currency(&currency)?,
                    balance: Amount::from_minor(balance),
                    pending_orders: Amount::from_minor(pending_orders),
                    pending_payouts: Amount::from_minor(pending_payouts),
                    updated_at,
                })
            },
        )
        .collect()
}

fn parse_currency(text: &str) -> Result<Currency, sqlx::Error> {
    text.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// Balance and sequence of each wallet of a partner.
pub(super) async fn receipts(
    pool: &PgPool,
    partner_id: PartnerId,
) -> Result<Vec<(Currency, Receipt)>, sqlx::Error> {
    let rows: Vec<(String, i64, i64)> =
        sqlx::query_as("SELECT currency, sequence, balance FROM wallets WHERE partner_id = $1")
            .bind(partner_id.as_uuid())
            .fetch_all(pool)
            .await?;
    let receipt = |(currency, sequence, balance): (String, i64, i64)| {
        let currency = currency
            .parse()
            .map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
        Ok((
            currency,
            Receipt {
                sequence,
                balance: Amount::from_minor(balance),
            },
        ))
    };
    rows.into_iter().map(receipt).collect()
}
