//! Changes of other nodes, which each node polls for and applies.

use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::runtime::Handle;
use vouchsafe_store::{PgStore, RecentChanges};
use vouchsafe_test_harness::Database;

const LATER_CHANGES: &str = "
    INSERT INTO audit_log (operator, action, subject)
    SELECT 'a script', 'product.put', 'p' || i FROM generate_series(1, 500) AS i";

#[tokio::test(flavor = "multi_thread")]
async fn change_committed_after_many_later_ones_is_applied() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current()).audit_log;
    let mut slow = database.connect().await;
    let superuser = database.superuser_options();
    let mut fast = PgConnection::connect_with(&superuser).await.unwrap();
    slow.execute(
        "BEGIN; INSERT INTO audit_log (operator, action, subject) VALUES ('alice', 'credential.revoke', 'key_1')",
    )
    .await
    .unwrap();
    fast.execute(LATER_CHANGES).await.unwrap();
    let applied = store.recent_changes().await.unwrap();
    slow.execute("COMMIT").await.unwrap();
    let newest = store.recent_changes().await.unwrap();
    assert_eq!(newest.unapplied(&applied), Some(vec![1]));

    // An hour later nothing is recent, and a node that polled meanwhile knows all of it.
    fast.execute(
        "ALTER TABLE audit_log DISABLE TRIGGER USER; UPDATE audit_log SET at = at - interval '1 hour'",
    )
    .await
    .unwrap();
    let settled = store.recent_changes().await.unwrap();
    assert_eq!(settled.unapplied(&newest), Some(vec![]));
    let unknown = RecentChanges::default();
    assert_eq!(settled.unapplied(&unknown), None, "everything is loaded again");
}
