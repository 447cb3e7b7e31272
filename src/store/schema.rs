//! What does the schema look like after a start? Every migration was run once; the functions are those of this program.
//!
//! Rule: migrations are never edited. Functions are: a start makes those anew whose text has changed. A function that
//! takes other arguments than before stands beside the old one, so that an older program on the same database goes on
//! while it is replaced.

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Executor as _, PgConnection};

/// The functions by name, each as one `CREATE OR REPLACE`.
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

/// The batch statement.
pub const COMMIT_BATCH: &str = include_str!("../../migrations/functions/commit_batch.sql");

/// What can be sold of a chunk.
const FREE_STOCK: &str = include_str!("../../migrations/functions/free_stock.sql");
/// What can be sold of several chunks, in arrays.
const FREE_OF_CHUNKS: &str = include_str!("../../migrations/functions/free_of_chunks.sql");
/// Whether anything can be sold of a chunk.
const HAS_FREE_STOCK: &str = include_str!("../../migrations/functions/has_free_stock.sql");
/// A node gets chunks.
const TAKE_CHUNKS: &str = include_str!("../../migrations/functions/take_chunks.sql");
/// When the first voucher expires that a node would get next.
const NEXT_TO_CLAIM: &str = include_str!("../../migrations/functions/next_to_claim.sql");
/// Where there is stock that a node does not get.
const FREE_ELSEWHERE: &str = include_str!("../../migrations/functions/free_elsewhere.sql");

/// Which orders wait for a SKU.
const WAITING_FOR: &str = include_str!("../../migrations/functions/waiting_for.sql");
/// What an entry of the trail is sealed by.
const AUDIT_TEXT: &str = include_str!("../../migrations/functions/audit_text.sql");
/// A partner's last event before a moment.
const EVENTS_BEFORE: &str = include_str!("../../migrations/functions/events_before.sql");
/// The codes of orders, for those who read them.
const RETRIEVE_CODES: &str = include_str!("../../migrations/functions/retrieve_codes.sql");

/// Held while the functions are made: two starts at once would update the same row of the catalogue.
const MAKING_FUNCTIONS: i64 = 0x766f_7563_6873_6166;

/// Brings a database up to date, on a connection of its own.
///
/// # Errors
/// [`sqlx::Error`] when the database does not answer, or has a migration that differs from this program's.
pub async fn bring_up_to_date(database: &PgConnectOptions) -> Result<(), sqlx::Error> {
    let one = PgPoolOptions::new().max_connections(1);
    let pool = one.connect_with(database.clone()).await?;
    let mut migrator = sqlx::migrate!();
    // A later program may have added to the schema; what it added does not disturb this one.
    migrator.set_ignore_missing(true);
    migrator.run(&pool).await?;
    let mut transaction = pool.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(MAKING_FUNCTIONS)
        .execute(&mut *transaction)
        .await?;
    for (name, function) in FUNCTIONS {
        if note(&mut transaction, name, function).await? {
            transaction.execute(function).await?;
        }
    }
    transaction.commit().await?;
    pool.close().await;
    Ok(())
}

/// Notes that this is the text of the function; says whether it was another one until now.
async fn note(connection: &mut PgConnection, name: &str, function: &str) -> Result<bool, sqlx::Error> {
    let noted = sqlx::query(
        "INSERT INTO functions AS f (name, digest)
         VALUES ($1, sha256($2::bytea))
         ON CONFLICT (name) DO UPDATE SET digest = EXCLUDED.digest
          WHERE f.digest <> EXCLUDED.digest",
    );
    let noted = noted
        .bind(name)
        .bind(function.as_bytes())
        .execute(connection)
        .await?;
    Ok(noted.rows_affected() > 0)
}
