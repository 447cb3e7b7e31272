//! Wallet reads for the engine and for partners.

use sqlx::PgPool;
use time::OffsetDateTime;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::money::{Amount, Currency};
use vouchsafe_domain::wallet::Wallet;

use super::batcher::{BatchOp, BatchResponse, request_index};

#[derive(Debug, Clone)]
pub(super) struct ReadWalletsOp;

impl BatchOp for ReadWalletsOp {
    type Request = PartnerId;
    type Response = Vec<Wallet>;

    const MAX_BATCH: usize = 32;

    async fn execute_batch(
        self,
        pool: PgPool,
        partners: Vec<PartnerId>,
    ) -> Result<BatchResponse<Vec<Wallet>>, sqlx::Error> {
        let wallets = load_wallets(&pool, &partners).await?;
        Ok(wallets.into_iter().map(|wallets| Some(Ok(wallets))).collect())
    }

    async fn execute_one(self, pool: PgPool, partner_id: PartnerId) -> Result<Vec<Wallet>, sqlx::Error> {
        let mut wallets = load_wallets(&pool, &[partner_id]).await?;
        Ok(wallets.pop().unwrap_or_default())
    }
}

/// Loads the wallets of several partners, in request order.
async fn load_wallets(pool: &PgPool, partners: &[PartnerId]) -> Result<Vec<Vec<Wallet>>, sqlx::Error> {
    // OFFSET 0 forces one index lookup per partner, whatever the planner estimates.
    let rows: Vec<(i32, String, i64, i64, i64, OffsetDateTime)> = sqlx::query_as(
        "SELECT a.position::integer, w.currency, w.balance, w.pending_orders, w.pending_payouts, w.updated_at
           FROM unnest($1::uuid[]) WITH ORDINALITY AS a (partner_id, position)
          CROSS JOIN LATERAL (SELECT *
                                FROM wallets AS w
                               WHERE w.partner_id = a.partner_id
                              OFFSET 0) AS w
          ORDER BY a.position, w.currency",
    )
    .bind(partners.iter().map(|id| id.as_uuid()).collect::<Vec<_>>())
    .fetch_all(pool)
    .await?;
    let mut wallets: Vec<_> = partners.iter().map(|_| Vec::new()).collect();
    for (position, currency, balance, pending_orders, pending_payouts, updated_at) in rows {
        let currency = parse_currency(&currency)?;
        wallets[request_index(position)?].push(Wallet {
            currency,
            balance: Amount::from_minor(balance).of(currency),
            pending_orders: Amount::from_minor(pending_orders).of(currency),
            pending_payouts: Amount::from_minor(pending_payouts).of(currency),
            updated_at,
        });
    }
    Ok(wallets)
}

fn parse_currency(text: &str) -> Result<Currency, sqlx::Error> {
    text.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// Loads balance and ledger sequence of each wallet of a partner.
pub(super) async fn load_wallet_states(
    pool: &PgPool,
    partner_id: PartnerId,
) -> Result<Vec<(Currency, WalletState)>, sqlx::Error> {
    let rows: Vec<(String, i64, i64)> =
        sqlx::query_as("SELECT currency, sequence, balance FROM wallets WHERE partner_id = $1")
            .bind(partner_id)
            .fetch_all(pool)
            .await?;
    let state = |(currency, sequence, balance): (String, i64, i64)| {
        let currency = currency
            .parse()
            .map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
        Ok((
            currency,
            WalletState {
                sequence,
                balance: Amount::from_minor(balance),
            },
        ))
    };
    rows.into_iter().map(state).collect()
}
