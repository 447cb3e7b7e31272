//! Connections to servers that are no primary, that were one, or whose commits wait for a standby.

use std::pin::pin;
use std::slice::from_ref;

use futures_util::future::poll_immediate;
use sqlx::{Executor as _, PgConnection};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use vouchsafe_actors::ports::vendors::SkuLocks as _;
use vouchsafe_security::environment::Environment;
use vouchsafe_simulation::build;
use vouchsafe_store::{PgStore, Servers, parse_database_url};
use vouchsafe_test_harness::{PostgresServer, WAIT_TIMEOUT, database_url, eventually, scratch_directory};

async fn create_primary() -> (TempDir, PostgresServer) {
    let scratch = scratch_directory();
    let primary = block_in_place(|| PostgresServer::create(scratch.path()));
    primary.create_database().await;
    (scratch, primary)
}

fn servers<'a>(named: impl IntoIterator<Item = &'a PostgresServer>) -> Servers {
    parse_database_url(&database_url(named), Environment::Sandbox).unwrap()
}

/// The address may be that of a proxy: its server answers, so that a wait brings nothing.
#[tokio::test(flavor = "multi_thread")]
async fn standby_behind_the_only_address_is_an_error_at_once() {
    let (scratch, primary) = create_primary().await;
    let standby = block_in_place(|| primary.create_standby(scratch.path(), "standby"));
    let store = PgStore::open(servers(from_ref(&standby)), Handle::current());
    let error = store
        .database
        .run(|pool| async move { pool.execute("SELECT").await.map(drop) })
        .await
        .unwrap_err();
    assert!(
        error.is_refused() && error.to_string().contains("in recovery"),
        "{error}"
    );
}

const IS_COMMIT_WAITING: &str =
    "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = current_user)";

async fn is_commit_waiting(observer: &mut PgConnection) -> bool {
    sqlx::query_scalar(IS_COMMIT_WAITING)
        .fetch_one(observer)
        .await
        .unwrap()
}

/// The end of the client does not end the wait of its backend: a client that connects again and again would
/// use up all connections.
#[tokio::test(flavor = "multi_thread")]
async fn connection_is_refused_while_a_commit_of_its_kind_waits_for_a_standby() {
    let (_scratch, primary) = create_primary().await;
    let lane = servers(from_ref(&primary)).with_application_name("a lane");
    let other = servers(from_ref(&primary)).with_application_name("another kind");
    let (mut observer, _) = other.connect().await.unwrap();
    observer.execute("CREATE TABLE rows (id integer)").await.unwrap();
    primary.replicate_synchronously().await;
    let (mut connection, _) = lane.connect().await.unwrap();
    {
        let mut commit = pin!(connection.execute("INSERT INTO rows VALUES (1)"));
        eventually("the commit to wait", WAIT_TIMEOUT, async || {
            assert!(
                poll_immediate(&mut commit).await.is_none(),
                "no standby confirms it"
            );
            is_commit_waiting(&mut observer).await.then_some(())
        })
        .await;
    }
    drop(connection);
    let refused = eventually("a refusal", WAIT_TIMEOUT, async || {
        lane.connect().await.map(drop).err()
    });
    let refused = refused.await.to_string();
    assert!(
        refused.contains("commits wait for a synchronous standby"),
        "{refused}"
    );
    assert!(is_commit_waiting(&mut observer).await, "its end is not awaited");
    other.connect().await.unwrap();
    primary.replicate_asynchronously().await;
    eventually("the next connection", WAIT_TIMEOUT, async || {
        lane.connect().await.map(drop).ok()
    })
    .await;
}

/// Other nodes lock at the new primary.
#[tokio::test(flavor = "multi_thread")]
async fn sku_locks_end_when_another_server_becomes_the_primary() {
    let (scratch, primary) = create_primary().await;
    let standby = block_in_place(|| primary.create_standby(scratch.path(), "standby"));
    let store = PgStore::open(servers([&primary, &standby]), Handle::current());
    let skus = || vec![build::sku("gift", 1_000)];
    let mut locks = store.waiting_orders.open_sku_locks().await.unwrap();
    assert_eq!(locks.lock(skus()).await.unwrap(), skus());
    standby.promote().await;
    eventually("the locks to end", WAIT_TIMEOUT, async || {
        locks.lock(skus()).await.err()
    })
    .await;
    let mut locks = store.waiting_orders.open_sku_locks().await.unwrap();
    assert_eq!(locks.lock(skus()).await.unwrap(), skus());
}
