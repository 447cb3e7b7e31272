//! Schema migrations and SQL functions.
//!
//! Migrations run once and are never edited. Functions may be edited: a start recreates those whose text has changed. A function
//! with a new argument list is created in addition to the old one, so an older version of the service keeps working on the same
//! database during an upgrade.

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Executor as _, PgConnection};

/// SQL functions by name, each one `CREATE OR REPLACE` statement.
const FUNCTIONS: [(&str, &str); 11] = [
    ("commit_batch", COMMIT_BATCH),
    ("free_stock", FREE_STOCK),
    ("free_of_chunks", FREE_OF_CHUNKS),
    ("has_free_stock", HAS_FREE_STOCK),
    ("take_chunks", TAKE_CHUNKS),
    ("next_to_claim", NEXT_TO_CLAIM),
    ("free_elsewhere", FREE_ELSEWHERE),
    ("waiting_for", WAITING_FOR),
    ("audit_text", AUDIT_TEXT),
    ("events_before", EVENTS_BEFORE),
    ("retrieve_codes", RETRIEVE_CODES),
];

/// SQL text of `commit_batch`.
pub const COMMIT_BATCH: &str = include_str!("../../../migrations/functions/commit_batch.sql");

const FREE_STOCK: &str = include_str!("../../../migrations/functions/free_stock.sql");
const FREE_OF_CHUNKS: &str = include_str!("../../../migrations/functions/free_of_chunks.sql");
const HAS_FREE_STOCK: &str = include_str!("../../../migrations/functions/has_free_stock.sql");
const TAKE_CHUNKS: &str = include_str!("../../../migrations/functions/take_chunks.sql");
const NEXT_TO_CLAIM: &str = include_str!("../../../migrations/functions/next_to_claim.sql");
const FREE_ELSEWHERE: &str = include_str!("../../../migrations/functions/free_elsewhere.sql");

const WAITING_FOR: &str = include_str!("../../../migrations/functions/waiting_for.sql");
const AUDIT_TEXT: &str = include_str!("../../../migrations/functions/audit_text.sql");
const EVENTS_BEFORE: &str = include_str!("../../../migrations/functions/events_before.sql");
const RETRIEVE_CODES: &str = include_str!("../../../migrations/functions/retrieve_codes.sql");

/// Key of the advisory lock around function creation: concurrent starts would update the same catalogue row.
const FUNCTIONS_LOCK: i64 = 0x766f_7563_6873_6166;

/// Runs the migrations and recreates changed functions, on a separate connection.
///
/// # Errors
/// [`sqlx::Error`] when the database does not answer, or a migration differs from the one that the database has run.
pub async fn migrate(database: &PgConnectOptions) -> Result<(), sqlx::Error> {
    let options = PgPoolOptions::new().max_connections(1);
    let pool = options.connect_with(database.clone()).await?;
    let mut migrator = sqlx::migrate!("../../migrations");
    // A newer version may have added migrations; they are compatible with this one.
    migrator.set_ignore_missing(true);
    migrator.run(&pool).await?;
    let mut transaction = pool.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(FUNCTIONS_LOCK)
        .execute(&mut *transaction)
        .await?;
    for (name, function) in FUNCTIONS {
        if record_digest(&mut transaction, name, function).await? {
            transaction.execute(function).await?;
        }
    }
    transaction.commit().await?;
    pool.close().await;
    Ok(())
}

/// Stores the digest of a function and returns whether it has changed.
async fn record_digest(
    connection: &mut PgConnection,
    name: &str,
    function: &str,
) -> Result<bool, sqlx::Error> {
    let recorded = sqlx::query(
        "INSERT INTO functions AS f (name, digest)
         VALUES ($1, sha256($2::bytea))
         ON CONFLICT (name) DO UPDATE SET digest = EXCLUDED.digest
          WHERE f.digest <> EXCLUDED.digest",
    );
    let recorded = recorded
        .bind(name)
        .bind(function.as_bytes())
        .execute(connection)
        .await?;
    Ok(recorded.rows_affected() > 0)
}
