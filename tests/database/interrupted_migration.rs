//! A migration that is canceled or does not get a lock: a certain failure, and the next `migrate` continues.

use sqlx::{Executor as _, PgPool};
use vouchsafe_private_postgres::Durability;
use vouchsafe_store::{StoreError, schema};
use vouchsafe_test_harness::Database;

use crate::void::wait_until_blocked;

/// A migration that creates this table waits for the end of the transaction.
const BLOCK: &str = "BEGIN; CREATE TABLE partners ()";

const CANCEL: &str = "
    SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

#[tokio::test(flavor = "multi_thread")]
async fn canceled_or_blocked_migration_is_not_written_and_is_continued() {
    let database = Database::create_empty(Durability::ForTests);
    let pool = PgPool::connect_with(database.superuser_options()).await.unwrap();
    for is_canceled in [true, false] {
        let mut holder = database.connect().await;
        holder.execute(BLOCK).await.unwrap();
        let options = database.options();
        let cancel = async {
            if is_canceled {
                wait_until_blocked(&pool).await;
                pool.execute(CANCEL).await.unwrap();
            }
        };
        let (migrated, ()) = tokio::join!(schema::migrate(&options), cancel);
        let error = migrated.unwrap_err();
        assert!(matches!(error, StoreError::NotWritten(_)), "{error:?}");
        // A slow machine reaches the lock timeout before the cancellation.
        let code = error.sqlstate().unwrap();
        assert!(code == "55P03" || is_canceled && code == "57014", "{error}");
        holder.execute("ROLLBACK").await.unwrap();
    }
    schema::migrate(&database.options()).await.unwrap();
    assert_eq!(schema::find_mismatch(&pool).await.unwrap(), None);
    pool.close().await;
    database.remove().await;
}
