//! Wallets: the newest state of each, for the engine and for partners.

use sqlx::PgPool;
use vouchsafe_actors::domain::ids::PartnerId;
use vouchsafe_actors::domain::ledger::Receipt;
use vouchsafe_actors::domain::money::{Amount, Currency};

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
