//! Wallet reads for the engine and for partners.

use sqlx::PgPool;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::money::{Amount, Currency};
use vouchsafe_domain::wallet::Wallet;

use vouchsafe_database::batcher::{BatchOp, BatchResponse, request_index};

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
}

/// Loads the wallets of several partners, in request order.
async fn load_wallets(pool: &PgPool, partners: &[PartnerId]) -> Result<Vec<Vec<Wallet>>, sqlx::Error> {
    // OFFSET 0 forces one index lookup per partner, whatever the planner estimates.
    let rows = sqlx::query!(
        r#"SELECT a.position::integer AS "position!", w.currency AS "currency: Currency", w.balance AS "balance: Amount",
                w.pending_orders AS "pending_orders: Amount", w.pending_payouts AS "pending_payouts: Amount", w.updated_at
           FROM unnest($1::uuid[]) WITH ORDINALITY AS a (partner_id, position)
          CROSS JOIN LATERAL (SELECT *
                                FROM wallets AS w
                               WHERE w.partner_id = a.partner_id
                              OFFSET 0) AS w
          ORDER BY a.position, w.currency"#,
        partners as _,
    );
    let mut wallets: Vec<_> = partners.iter().map(|_| Vec::new()).collect();
    for row in rows.fetch_all(pool).await? {
        wallets[request_index(row.position)?].push(Wallet {
            currency: row.currency,
            balance: row.balance.of(row.currency),
            pending_orders: row.pending_orders.of(row.currency),
            pending_payouts: row.pending_payouts.of(row.currency),
            updated_at: row.updated_at,
        });
    }
    Ok(wallets)
}

/// Loads balance and ledger sequence of each wallet of a partner.
pub(super) async fn load_wallet_states(
    pool: &PgPool,
    partner_id: PartnerId,
) -> Result<Vec<(Currency, WalletState)>, sqlx::Error> {
    sqlx::query!(
        r#"SELECT currency AS "currency: Currency", sequence, balance AS "balance: Amount" FROM wallets WHERE partner_id = $1"#,
        partner_id as _,
    )
    .map(|row| {
        let state = WalletState {
            sequence: row.sequence,
            balance: row.balance,
        };
        (row.currency, state)
    })
    .fetch_all(pool)
    .await
}
