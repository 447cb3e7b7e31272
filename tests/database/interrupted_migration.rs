//! `migrate` that is killed at each of its statements, or does not get a lock.

use std::collections::BTreeSet;

use sqlx::{Executor as _, PgPool};
use vouchsafe_private_postgres::Durability;
use vouchsafe_store::{StoreError, schema};
use vouchsafe_test_harness::Database;

use crate::interrupted_steps::{kill_at_statements, rows};

/// Functions, migrations and rights.
const INSTALLED: &str = "
    SELECT concat_ws(' ', 'function', name, encode(digest, 'hex')) FROM functions
     UNION ALL
    SELECT concat_ws(' ', 'migration', version, success, encode(checksum, 'hex')) FROM _sqlx_migrations
     UNION ALL
    SELECT concat_ws(' ', 'object', oid::regclass, relacl) FROM pg_class WHERE relnamespace = 'public'::regnamespace
     UNION ALL
    SELECT concat_ws(' ', 'code', oid::regprocedure, proacl) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
     ORDER BY 1";

/// What only one of the lists has.
fn difference(expected: &[String], found: &[String]) -> Vec<String> {
    let [expected, found] = [expected, found].map(|list| list.iter().cloned().collect::<BTreeSet<_>>());
    expected.symmetric_difference(&found).cloned().collect()
}

async fn find_mismatch(database: &Database) -> Option<schema::SchemaMismatch> {
    let pool = PgPool::connect_with(database.superuser_options()).await.unwrap();
    let mismatch = schema::find_mismatch(&pool).await.unwrap();
    pool.close().await;
    mismatch
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_migration_is_continued_and_serves_only_when_complete() {
    let migrated = Database::create().await;
    let expected = rows(&migrated, INSTALLED).await;
    let empty = Database::create_empty(Durability::ForTests);
    let statements = kill_at_statements(
        &empty,
        Database::options,
        async |options| schema::migrate(&options, || ()).await,
        async |killed| {
            if find_mismatch(killed).await.is_none() {
                let found = difference(&expected, &rows(killed, INSTALLED).await);
                assert!(found.is_empty(), "it would be served: {found:?}");
            }
        },
        async |repeated, _| {
            let found = difference(&expected, &rows(repeated, INSTALLED).await);
            assert!(found.is_empty(), "{found:?}");
            assert_eq!(find_mismatch(repeated).await, None);
        },
    )
    .await;
    assert!(statements >= 15, "{statements}");
    empty.remove().await;
    migrated.remove().await;
}

/// A migration that creates this table waits for the end of the transaction.
const BLOCK: &str = "BEGIN; CREATE TABLE partners ()";

#[tokio::test(flavor = "multi_thread")]
async fn blocked_migration_is_not_written_and_is_continued() {
    let database = Database::create_empty(Durability::ForTests);
    let mut holder = database.connect().await;
    holder.execute(BLOCK).await.unwrap();
    let error = schema::migrate(&database.options(), || ()).await.unwrap_err();
    assert!(matches!(error, StoreError::NotWritten(_)), "{error:?}");
    assert_eq!(error.sqlstate(), Some("55P03"), "{error}");
    holder.execute("ROLLBACK").await.unwrap();
    schema::migrate(&database.options(), || ()).await.unwrap();
    assert_eq!(find_mismatch(&database).await, None);
    database.remove().await;
}

/// What `CREATE INDEX CONCURRENTLY` leaves behind when it is killed.
#[tokio::test(flavor = "multi_thread")]
async fn index_that_a_killed_migration_left_invalid_is_created_again() {
    let database = Database::create().await;
    let pool = PgPool::connect_with(database.superuser_options()).await.unwrap();
    for statement in [
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'orders_erased'::regclass",
        "DELETE FROM _sqlx_migrations WHERE version = 8",
    ] {
        pool.execute(statement).await.unwrap();
    }
    schema::migrate(&database.options(), || ()).await.unwrap();
    let is_valid: bool =
        sqlx::query_scalar("SELECT indisvalid FROM pg_index WHERE indexrelid = 'orders_erased'::regclass")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert!(is_valid);
    pool.close().await;
    database.remove().await;
}
