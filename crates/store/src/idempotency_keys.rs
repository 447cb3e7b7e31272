//! Idempotency keys: lookup of stored responses and purge of expired ones.

use sqlx::{Executor, PgPool, Postgres};
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_domain::idempotency::{Fingerprint, KeyHash, Response, StoredResponse};

use vouchsafe_database::database::Database;

/// Pages of a statement. They have up to 8,000 keys with short responses.
const STATEMENT_PAGES: i64 = 128;

/// Calls that visit the whole table: six hours of one call a minute. Expired keys take up to a quarter of the
/// table's room.
const SWEEP_CALLS: i64 = 360;

/// Responses that are stored under idempotency keys.
#[derive(Debug, Clone)]
pub struct StoredResponses(pub(super) Database);

/// Next page of the table to search for expired keys. The first is random: a node that restarts often reaches
/// each page.
#[derive(Debug, Default)]
pub struct KeySweep(Option<i64>);

impl StoredResponses {
    /// Deletes the expired idempotency keys in the next part of the table and returns their number. It reads
    /// the table in its order on disk: an index on the expiry would cost each order more than the sweep does.
    #[boxed]
    pub async fn purge_expired(&self, sweep: &mut KeySweep) -> Result<u64, StoreError> {
        let size = sqlx::query!(
            r#"SELECT pages AS "pages!", floor(random() * pages)::bigint AS "random!"
                 FROM (SELECT pg_relation_size('idempotency_keys') / current_setting('block_size')::bigint) AS t (pages)"#
        );
        let size = self
            .0
            .run(move |pool| async move { size.fetch_one(&pool).await })
            .await?;
        let mut next = sweep.0.unwrap_or(size.random);
        let mut left = size
            .pages
            .min((size.pages / SWEEP_CALLS + 1).max(STATEMENT_PAGES));
        let mut removed = 0;
        while left > 0 {
            if next >= size.pages {
                next = 0;
            }
            let end = size.pages.min(next + left.min(STATEMENT_PAGES));
            removed += self
                .0
                .run(move |pool| async move { purge_pages(&pool, next, end).await })
                .await?;
            left -= end - next;
            next = end;
            sweep.0 = Some(next);
        }
        Ok(removed)
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

/// Deletes the expired keys in the pages from `begin` to before `end`.
async fn purge_pages(pool: &PgPool, begin: i64, end: i64) -> Result<u64, sqlx::Error> {
    // `now()` is constant in a transaction. SKIP LOCKED waits for no row, so lock order is irrelevant. The
    // rows are locked, so their places are stable, and no estimate of their number makes a scan of the
    // deletion.
    let removed = sqlx::query_scalar!(
        r#"WITH expired AS MATERIALIZED (
            SELECT ctid AS row_id
              FROM idempotency_keys
             WHERE ctid >= $1::text::tid AND ctid < $2::text::tid AND expires_at <= now()
               FOR UPDATE SKIP LOCKED
         ), removed AS (
            DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(SELECT e.row_id FROM expired AS e)) RETURNING 1
         )
         SELECT count(*) AS "removed!" FROM removed"#,
        first_row_of(begin),
        first_row_of(end),
    );
    Ok(removed.fetch_one(pool).await?.cast_unsigned())
}

/// Place of the first row of a page, as Postgres writes it.
fn first_row_of(page: i64) -> String {
    format!("({page},0)")
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
