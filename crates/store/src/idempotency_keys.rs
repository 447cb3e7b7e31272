//! Idempotency keys: lookup of stored responses and purge of expired ones.

use sqlx::{Executor, PgPool, Postgres};
use vouchsafe_domain::idempotency::{Fingerprint, KeyHash, Response, StoredResponse};

use super::database::Database;

/// Keeps the transaction of one purge short.
const PURGE_ROWS: u64 = 5_000;

/// Responses that are stored under idempotency keys.
#[derive(Debug, Clone)]
pub struct StoredResponses(pub(super) Database);

impl StoredResponses {
    /// Deletes the expired idempotency keys and returns their number.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn purge_expired(&self) -> Result<u64, sqlx::Error> {
        let mut removed = 0;
        loop {
            let batch = self.0.run(|pool| async move { purge_batch(&pool).await });
            let batch = batch.await?;
            removed += batch;
            if batch < PURGE_ROWS {
                return Ok(removed);
            }
        }
    }
}

/// Finds the response stored under `key`, unless it has expired by the database's clock.
pub(super) async fn find_response(
    executor: impl Executor<'_, Database = Postgres>,
    key: KeyHash,
) -> Result<Option<StoredResponse>, sqlx::Error> {
    sqlx::query!(
        "SELECT fingerprint, status, body FROM idempotency_keys WHERE key = $1 AND expires_at > clock_timestamp()",
        key as _,
    )
    .try_map(|row| parse_stored_response(row.fingerprint, row.status, row.body))
    .fetch_optional(executor)
    .await
}

/// Deletes up to [`PURGE_ROWS`] expired keys and returns their number.
async fn purge_batch(pool: &PgPool) -> Result<u64, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    // Finds expired rows by the index on `expires_at` and never scans the table. The comparison with `now()`, which is constant in
    // a transaction, can use an index; `clock_timestamp()` could not. SKIP LOCKED waits for no row, so lock order is irrelevant.
    transaction.execute("SET LOCAL enable_seqscan = off").await?;
    let removed = sqlx::query!(
        "DELETE FROM idempotency_keys
          WHERE key IN (
                SELECT key
                  FROM idempotency_keys
                 WHERE expires_at <= now()
                 LIMIT $1
                   FOR UPDATE SKIP LOCKED
                )",
        PURGE_ROWS.cast_signed(),
    );
    let removed = removed.execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(removed.rows_affected())
}

/// Decodes the columns of a stored response.
pub(super) fn parse_stored_response(
    fingerprint: Vec<u8>,
    status: i16,
    body: Vec<u8>,
) -> Result<StoredResponse, sqlx::Error> {
    let fingerprint = fingerprint
        .try_into()
        .map_err(|_| sqlx::Error::Decode("a stored fingerprint does not have 32 bytes".into()))?;
    let response = Response {
        status: status.cast_unsigned(),
        body: body.into(),
    };
    Ok(StoredResponse {
        fingerprint: Fingerprint(fingerprint),
        response,
    })
}
