//! Answers under idempotency keys: finding one, and clearing away those whose time is over.

use sqlx::{Executor, PgPool, Postgres};
use vouchsafe_actors::domain::answer::{KeyHash, KnownAnswer};

use super::commit::known_answer;

/// Most rows that one clearing removes: keeps its transaction short.
pub(super) const PURGE_ROWS: u64 = 5_000;

/// The answer under `key`, unless its 24 hours are over by the database's clock.
pub(super) async fn find_answer(
    executor: impl Executor<'_, Database = Postgres>,
    key: KeyHash,
) -> Result<Option<KnownAnswer>, sqlx::Error> {
    let row: Option<(Vec<u8>, i16, Vec<u8>)> = sqlx::query_as(
        "SELECT fingerprint, status, body FROM idempotency_keys WHERE key = $1 AND expires_at > clock_timestamp()",
    )
    .bind(key.0)
    .fetch_optional(executor)
    .await?;
    row.map(|(fingerprint, status, body)| known_answer(fingerprint, status, body))
        .transpose()
}

/// Removes some of the answers whose time is over; says how many. Waits for none, so the order of their locks does not matter; and
/// asks for one moment, not for each row's own: only that can be looked up in an index. That index says in which pages to look;
/// the table is never read whole.
pub(super) async fn purge_some(pool: &PgPool) -> Result<u64, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    transaction.execute("SET LOCAL enable_seqscan = off").await?;
    let removed = sqlx::query(
        "DELETE FROM idempotency_keys
          WHERE key IN (
                SELECT key
                  FROM idempotency_keys
                 WHERE expires_at <= now()
                 LIMIT $1
                   FOR UPDATE SKIP LOCKED
                )",
    )
    .bind(PURGE_ROWS.cast_signed())
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(removed.rows_affected())
}
