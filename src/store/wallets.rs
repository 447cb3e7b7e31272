//! Wallets: the newest state of each, for the engine and for partners.

use sqlx::PgPool;
use time::OffsetDateTime;
use vouchsafe_actors::domain::ids::PartnerId;
use vouchsafe_actors::domain::ledger::Receipt;
use vouchsafe_actors::domain::money::{Amount, Currency};

use super::together::{BatchOp, Outcomes, place};

/// A wallet as its owner sees it. Amounts in minor units.
#[derive(Debug, Clone)]
pub struct WalletRow {
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

/// Reads the wallets of partners, by currency.
#[derive(Debug, Clone)]
pub(super) struct ReadWallets;

impl BatchOp for ReadWallets {
    /// Whose.
    type Request = PartnerId;
    type Answer = Vec<WalletRow>;

    const MOST: usize = 32;

    async fn together(
        self,
        pool: PgPool,
        partners: Vec<PartnerId>,
    ) -> Result<Outcomes<Vec<WalletRow>>, sqlx::Error> {
        let wallets = of_partners(&pool, &partners).await?;
        Ok(wallets.into_iter().map(|wallets| Some(Ok(wallets))).collect())
    }

    async fn alone(self, pool: PgPool, partner_id: PartnerId) -> Result<Vec<WalletRow>, sqlx::Error> {
        let mut wallets = of_partners(&pool, &[partner_id]).await?;
        Ok(wallets.pop().unwrap_or_default())
    }
}

/// The wallets of each, in their order.
async fn of_partners(pool: &PgPool, partners: &[PartnerId]) -> Result<Vec<Vec<WalletRow>>, sqlx::Error> {
    // Behind an OFFSET wallets are looked up partner by partner, whatever the planner thinks of them.
    let rows: Vec<(i32, String, i64, i64, i64, OffsetDateTime)> = sqlx::query_as(
        "SELECT a.place::integer, w.currency, w.balance, w.pending_orders, w.pending_payouts, w.updated_at
           FROM unnest($1::uuid[]) WITH ORDINALITY AS a (partner_id, place)
          CROSS JOIN LATERAL (SELECT *
                                FROM wallets AS w
                               WHERE w.partner_id = a.partner_id
                              OFFSET 0) AS w
          ORDER BY a.place, w.currency",
    )
    .bind(partners.iter().map(|id| id.as_uuid()).collect::<Vec<_>>())
    .fetch_all(pool)
    .await?;
    let mut wallets: Vec<_> = partners.iter().map(|_| Vec::new()).collect();
    for (of, currency, balance, pending_orders, pending_payouts, updated_at) in rows {
        wallets[place(of)?].push(WalletRow {
            currency: parse_currency(&currency)?,
            balance: Amount::from_minor(balance),
            pending_orders: Amount::from_minor(pending_orders),
            pending_payouts: Amount::from_minor(pending_payouts),
            updated_at,
        });
    }
    Ok(wallets)
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
