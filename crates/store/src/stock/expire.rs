//! Voucher expiry: removes free vouchers from sale after their last valid day, with a row in `allocations`.
//!
//! | step, in one transaction | locks |
//! |---|---|
//! | try the advisory lock: one node at a time | does not wait |
//! | insert an allocation for each expired free voucher | rows in stock id order, as in a commit |
//! | mark the chunks as expired up to today | skips locked chunks |
//! | write an audit entry per SKU | |
//!
//! The database's date (UTC) counts, and the last valid day is still valid. The primary key of `allocations`
//! decides against a concurrent order: an order decided before midnight keeps the voucher if it commits
//! first, else it decides again.

use serde::Serialize;
use sqlx::PgConnection;
use time::Date;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::{ProductId, Sku};

use crate::stock::Stock;

/// Chunks per transaction, about 5,000 rows: a concurrent order waits a few milliseconds.
const MAX_CHUNKS: usize = 10;

/// Key of the advisory lock that keeps nodes from doing the same work. Any otherwise unused number.
const EXPIRY_LOCK: i64 = 0x5653_7377_6565_7000;

/// Result of one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExpiryBatch {
    pub expired: u64,
    /// SKUs whose shelves in memory still contain expired vouchers.
    pub skus: Vec<Sku>,
    /// Whether to run the next transaction at once.
    pub has_more: bool,
}

/// Audited state of an expiry.
#[derive(Serialize)]
struct ExpiryAuditState {
    expired: i64,
}

impl Stock {
    /// Removes a batch of expired vouchers from sale. Idempotent. On concurrent calls, all nodes but one do
    /// nothing.
    ///
    /// # Errors
    /// The next call repeats the work.
    #[boxed]
    pub async fn expire_batch(&self) -> Result<ExpiryBatch, StoreError> {
        transaction!(self.0, "stock.expire", async |transaction| {
            let lock = sqlx::query!(
                r#"SELECT pg_try_advisory_xact_lock($1) AS "is_locked!", (now() AT TIME ZONE 'UTC')::date AS "today!""#,
                EXPIRY_LOCK,
            );
            let lock = lock.fetch_one(&mut **transaction).await?;
            let today = lock.today;
            if !lock.is_locked {
                return Ok(ExpiryBatch::default());
            }
            let chunks = find_expired_chunks(transaction, today).await?;
            let expired = allocate_expired(transaction, &chunks, today).await?;
            let marked = mark_expired(transaction, &chunks, today).await?;
            let mut batch = ExpiryBatch {
                has_more: chunks.len() == MAX_CHUNKS && marked > 0,
                ..ExpiryBatch::default()
            };
            for (sku, expired) in expired {
                let state = ExpiryAuditState { expired };
                let actor = AuditActor::service();
                audit::write(
                    transaction,
                    &actor,
                    AuditAction::ExpireStock,
                    &sku,
                    NO_STATE,
                    Some(&state),
                )
                .await?;
                batch.expired += expired.unsigned_abs();
                batch.skus.push(sku);
            }
            Ok(batch)
        })
    }
}

async fn find_expired_chunks(connection: &mut PgConnection, today: Date) -> Result<Vec<i64>, sqlx::Error> {
    sqlx::query_scalar!(
        "SELECT chunk_id
           FROM chunks
          WHERE NOT emptied
            AND first_expiry < $1
            AND (expired_before IS NULL OR expired_before < $1)
          ORDER BY first_expiry, chunk_id
          LIMIT $2",
        today,
        to_bigint(MAX_CHUNKS),
    )
    .fetch_all(connection)
    .await
}

/// Includes chunks that are reserved for orders: an expired voucher must not be delivered.
async fn allocate_expired(
    connection: &mut PgConnection,
    chunks: &[i64],
    today: Date,
) -> Result<Vec<(Sku, i64)>, sqlx::Error> {
    sqlx::query!(
        r#"WITH expired AS MATERIALIZED (
            SELECT c.product_id, c.denomination, s.stock_id
              FROM chunks AS c
             CROSS JOIN LATERAL free_stock_v1(c.first_stock_id, c.last_stock_id, '-infinity') AS s
             WHERE c.chunk_id = ANY ($1)
               AND s.expiry < $2
         ), allocated AS (
            INSERT INTO allocations (stock_id, withdrawal_reason)
            SELECT e.stock_id, 'expired'
              FROM expired AS e
             ORDER BY e.stock_id
            ON CONFLICT (stock_id) DO NOTHING
            RETURNING stock_id
         )
         SELECT e.product_id AS "product_id: ProductId", e.denomination AS "denomination: Amount", count(*) AS "expired!"
           FROM expired AS e
           JOIN allocated AS t ON t.stock_id = e.stock_id
          GROUP BY e.product_id, e.denomination
          ORDER BY e.product_id, e.denomination"#,
        chunks,
        today,
    )
    .map(|row| {
        let sku = Sku {
            product_id: row.product_id,
            denomination: row.denomination,
        };
        (sku, row.expired)
    })
    .fetch_all(connection)
    .await
}

/// Skips chunks that a commit has locked. Waiting for them could deadlock: the lock order is chunks before
/// vouchers, and vouchers are locked already.
async fn mark_expired(
    connection: &mut PgConnection,
    chunks: &[i64],
    today: Date,
) -> Result<u64, sqlx::Error> {
    let marked = sqlx::query!(
        "UPDATE chunks AS c
            SET expired_before = $2,
                emptied = NOT EXISTS (SELECT FROM free_stock_v1(c.first_stock_id, c.last_stock_id, '-infinity'))
          WHERE c.chunk_id IN (
                SELECT k.chunk_id FROM chunks AS k WHERE k.chunk_id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED
                )",
        chunks,
        today,
    );
    Ok(marked.execute(connection).await?.rows_affected())
}
