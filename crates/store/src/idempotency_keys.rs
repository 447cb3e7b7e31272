//! Idempotency keys: lookup of stored responses and purge of expired ones.

use sqlx::{Executor, PgPool, Postgres};
use time::OffsetDateTime;
use vouchsafe_database::boxed;
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
    #[boxed]
    pub async fn purge_expired(&self) -> Result<u64, sqlx::Error> {
        let (mut removed, mut expired_from) = (0, None);
        loop {
            let batch = self
                .0
                .run(move |pool| async move { purge_batch(&pool, expired_from).await });
            let batch = batch.await?;
            removed += batch.removed;
            if batch.removed < PURGE_ROWS {
                return Ok(removed);
            }
            expired_from = batch.last_expiry;
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

/// Expired keys that a statement has deleted.
struct PurgedBatch {
    removed: u64,
    last_expiry: Option<OffsetDateTime>,
}

/// Deletes up to [`PURGE_ROWS`] keys, the longest expired first, of those that expired at this time or later: those that the last
/// batch deleted stay in the index until a vacuum.
async fn purge_batch(
    pool: &PgPool,
    expired_from: Option<OffsetDateTime>,
) -> Result<PurgedBatch, sqlx::Error> {
    // The comparison with `now()`, which is constant in a transaction, can use an index; `clock_timestamp()` could not. SKIP LOCKED
    // waits for no row, so lock order is irrelevant. The rows are locked, so their places are stable, and no estimate of their
    // number makes a scan of the deletion.
    sqlx::query!(
        r#"WITH expired AS MATERIALIZED (
            SELECT ctid AS row_id, expires_at
              FROM idempotency_keys
             WHERE expires_at <= now() AND expires_at >= COALESCE($1, '-infinity'::timestamptz)
             ORDER BY expires_at
             LIMIT $2
               FOR UPDATE SKIP LOCKED
         ), removed AS (
            DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(SELECT e.row_id FROM expired AS e)) RETURNING expires_at
         )
         SELECT count(*) AS "removed!", max(expires_at) AS last_expiry FROM removed"#,
        expired_from,
        PURGE_ROWS.cast_signed(),
    )
    .map(|row| PurgedBatch {
        removed: row.removed.cast_unsigned(),
        last_expiry: row.last_expiry,
    })
    .fetch_one(pool)
    .await
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
