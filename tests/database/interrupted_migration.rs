//! A migration that does not get a lock: a certain failure, and the next `migrate` continues.

use sqlx::{Executor as _, PgPool};
use vouchsafe_private_postgres::Durability;
use vouchsafe_store::{StoreError, schema};
use vouchsafe_test_harness::Database;

/// A migration that creates this table waits for the end of the transaction.
const BLOCK: &str = "BEGIN; CREATE TABLE partners ()";

#[tokio::test(flavor = "multi_thread")]
async fn blocked_migration_is_not_written_and_is_continued() {
    let database = Database::create_empty(Durability::ForTests);
    let mut holder = database.connect().await;
    holder.execute(BLOCK).await.unwrap();
    let error = schema::migrate(&database.options()).await.unwrap_err();
    assert!(matches!(error, StoreError::NotWritten(_)), "{error:?}");
    assert_eq!(error.sqlstate(), Some("55P03"), "{error}");
    holder.execute("ROLLBACK").await.unwrap();
    schema::migrate(&database.options()).await.unwrap();
    let pool = PgPool::connect_with(database.superuser_options()).await.unwrap();
    assert_eq!(schema::find_mismatch(&pool).await.unwrap(), None);
    pool.close().await;
    database.remove().await;
}
