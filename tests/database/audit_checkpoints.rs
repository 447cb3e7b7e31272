//! Audit checkpoints: every entry is covered once, including late commits, and writers never wait.

use sqlx::{Executor as _, PgConnection};
use tokio::runtime::Handle;
use vouchsafe_domain::category::Category;
use vouchsafe_security::vault::checkpoint_key::CheckpointKey;
use vouchsafe_store::{AuditActor, PgStore};
use vouchsafe_verify as verify;

use vouchsafe_test_harness::{Database, WAIT_TIMEOUT};

fn key() -> CheckpointKey {
    CheckpointKey::new([1; 32])
}

const INSERT_ENTRY: &str =
    "INSERT INTO audit_log (operator, action, subject) VALUES ('somebody', 'stock.void', 'x')";

async fn checkpoint_entries(connection: &mut PgConnection) -> Vec<Vec<i64>> {
    sqlx::query_scalar("SELECT entries FROM audit_checkpoints ORDER BY number")
        .fetch_all(connection)
        .await
        .unwrap()
}

async fn assert_checkpoints_hold(connection: &mut PgConnection) {
    let findings = verify::check(connection).await.unwrap();
    let found = findings
        .iter()
        .find(|finding| finding.name == "audit.checkpoints")
        .unwrap();
    assert!(found.holds, "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn late_commit_is_in_later_checkpoint() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    assert_eq!(
        store.audit_log.write_checkpoint(key()).await.unwrap(),
        None,
        "an empty log has no checkpoint"
    );
    let [mut slow, mut fast] = [database.connect().await, database.connect().await];
    slow.execute("BEGIN").await.unwrap();
    slow.execute(INSERT_ENTRY).await.unwrap();
    fast.execute(INSERT_ENTRY).await.unwrap();
    let first = store.audit_log.write_checkpoint(key()).await.unwrap().unwrap();
    assert_eq!((first.number, first.entries, first.is_full()), (1, 1, false));
    slow.execute("COMMIT").await.unwrap();
    let second = store.audit_log.write_checkpoint(key()).await.unwrap().unwrap();
    assert_eq!((second.number, second.entries), (2, 1));
    assert!(first.hash.len() == 64 && first.hash != second.hash);
    assert_eq!(store.audit_log.write_checkpoint(key()).await.unwrap(), None);
    let entries = checkpoint_entries(&mut fast).await;
    assert!(
        entries[0][0] > entries[1][0],
        "the later checkpoint must contain the earlier entry: {entries:?}"
    );
    assert_checkpoints_hold(&mut fast).await;
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_audit_log_gets_checkpoints_of_1000_entries() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    let mut connection = database.connect().await;
    let insert = "INSERT INTO audit_log (operator, action, subject) SELECT 'somebody', 'stock.void', i::text
                  FROM generate_series(1, 2500) AS i";
    connection.execute(insert).await.unwrap();
    let mut sealed = Vec::new();
    while let Some(seal) = store.audit_log.write_checkpoint(key()).await.unwrap() {
        sealed.push((seal.entries, seal.is_full()));
    }
    assert_eq!(sealed, [(1_000, true), (1_000, true), (500, false)]);
    // The hashed text must not depend on the session's time zone.
    connection.execute("SET TimeZone = 'Asia/Tokyo'").await.unwrap();
    assert_checkpoints_hold(&mut connection).await;
    database.remove().await;
}

/// Operators write while several nodes create checkpoints and one of them is stalled with the lock.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writers_and_checkpoints_do_not_block() {
    let database = Database::create().await;
    let stores = [(); 3].map(|()| PgStore::open(database.service_options(), Handle::current()));
    let mut connection = database.connect().await;
    connection.execute("BEGIN").await.unwrap();
    let lock = "SELECT pg_advisory_xact_lock(x'56537365616c0000'::bigint)";
    connection.execute(lock).await.unwrap();
    assert_eq!(
        stores[0].audit_log.write_checkpoint(key()).await.unwrap(),
        None,
        "another node holds the lock"
    );
    let write = |number: usize| {
        let category = Category {
            category_id: format!("c{number}"),
            name: "Games".to_owned(),
            parent_id: None,
        };
        stores[number % 3].categories.put(category, AuditActor::service())
    };
    let writing = futures_util::future::join_all((0..100).map(write));
    let written = tokio::time::timeout(WAIT_TIMEOUT, writing).await.unwrap();
    assert!(written.iter().all(Result::is_ok));
    connection.execute("COMMIT").await.unwrap();
    let seal = async |store: &PgStore| {
        for _ in 0..20 {
            store.audit_log.write_checkpoint(key()).await.unwrap();
        }
    };
    let writing = futures_util::future::join_all((100..300).map(write));
    let (_, _, written) = tokio::join!(seal(&stores[0]), seal(&stores[1]), writing);
    assert!(written.iter().all(Result::is_ok));
    while stores[0]
        .audit_log
        .write_checkpoint(key())
        .await
        .unwrap()
        .is_some()
    {}
    let mut all: Vec<i64> = checkpoint_entries(&mut connection).await.concat();
    all.sort_unstable();
    let entries: Vec<i64> = sqlx::query_scalar("SELECT audit_id FROM audit_log ORDER BY audit_id")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert_eq!((entries.len(), &all), (300, &entries));
    assert_checkpoints_hold(&mut connection).await;
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_are_append_only() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    let mut connection = database.connect().await;
    connection.execute(INSERT_ENTRY).await.unwrap();
    store.audit_log.write_checkpoint(key()).await.unwrap().unwrap();
    for change in [
        "UPDATE audit_checkpoints SET hash = sha256('x')",
        "DELETE FROM audit_checkpoints",
        "TRUNCATE audit_checkpoints",
        "DELETE FROM audit_log",
    ] {
        assert!(connection.execute(change).await.is_err(), "{change}");
    }
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listed_checkpoint_whose_entries_were_changed_is_not_intact() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    let mut connection = database.connect().await;
    for _ in 0..3 {
        connection.execute(INSERT_ENTRY).await.unwrap();
        store.audit_log.write_checkpoint(key()).await.unwrap().unwrap();
    }
    let list = async |key: CheckpointKey| {
        let key = Some(key);
        let listed = store.audit_log.list_checkpoints(None, 10, key).await.unwrap();
        let intact = listed
            .iter()
            .map(|checkpoint| (checkpoint.number, checkpoint.is_intact.unwrap()));
        intact.collect::<Vec<_>>()
    };
    assert_eq!(list(key()).await, [(3, true), (2, true), (1, true)]);
    let other = CheckpointKey::new([2; 32]);
    assert_eq!(list(other).await, [(3, false), (2, false), (1, false)]);

    // As the owner of the tables can.
    connection
        .execute("ALTER TABLE audit_log DISABLE TRIGGER USER")
        .await
        .unwrap();
    let forge = "UPDATE audit_log SET operator = 'nobody' WHERE audit_id = (SELECT entries[1] FROM \
        audit_checkpoints WHERE number = 2)";
    connection.execute(forge).await.unwrap();
    assert_eq!(list(key()).await, [(3, true), (2, false), (1, true)]);
    let remove =
        "DELETE FROM audit_log WHERE audit_id = (SELECT entries[1] FROM audit_checkpoints WHERE number = 1)";
    connection.execute(remove).await.unwrap();
    assert_eq!(list(key()).await, [(3, true), (2, false), (1, false)]);

    // With another HMAC, a checkpoint is not the service's.
    connection
        .execute(
            "ALTER TABLE audit_checkpoints DISABLE TRIGGER USER; UPDATE audit_checkpoints SET mac = sha256(mac)",
        )
        .await
        .unwrap();
    let listed = store
        .audit_log
        .list_checkpoints(None, 10, Some(key()))
        .await
        .unwrap();
    assert_eq!(listed[0].is_intact, Some(false));
    let unchecked = store.audit_log.list_checkpoints(None, 10, None).await.unwrap();
    assert!(unchecked.iter().all(|checkpoint| checkpoint.is_intact.is_none()));
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_on_request_cover_all_entries_after_another_node_has_written_its_own() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    let mut connection = database.connect().await;
    // More than the checkpoints of one run.
    let insert = "INSERT INTO audit_log (operator, action, subject) SELECT 'somebody', 'stock.void', i::text
                  FROM generate_series(1, 21500) AS i";
    connection.execute(insert).await.unwrap();
    // Another node writes a checkpoint: the request waits for its lock.
    let mut other = database.connect().await;
    other
        .execute("BEGIN; SELECT pg_advisory_xact_lock(x'56537365616c0000'::bigint)")
        .await
        .unwrap();
    assert_eq!(store.audit_log.write_checkpoint(key()).await.unwrap(), None);
    let request = store
        .audit_log
        .write_checkpoints_now(key(), AuditActor::service());
    let (newest, ()) = tokio::join!(request, async {
        other.execute("COMMIT").await.map(drop).unwrap()
    });
    let newest = newest.unwrap().unwrap();
    assert_eq!(
        (newest.number, newest.entries, newest.is_intact),
        (22, 501, Some(true))
    );
    let entries: Vec<_> = checkpoint_entries(&mut connection).await.concat();
    let all: Vec<i64> = sqlx::query_scalar("SELECT audit_id FROM audit_log ORDER BY audit_id")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert_eq!(entries, all);
    assert_checkpoints_hold(&mut connection).await;
    database.remove().await;
}
