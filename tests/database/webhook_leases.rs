//! Leases of webhook endpoints beside changes of the endpoint.

use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use uuid::Uuid;
use vouchsafe_actors::delivery::outbox::Outbox as _;
use vouchsafe_domain::ids::WebhookId;
use vouchsafe_store::{PgNode, PgOutbox, PgStore};
use vouchsafe_test_harness::{Database, WAIT_TIMEOUT, eventually};

/// An endpoint with a delivery that is due.
const INSERT_ENDPOINT: &str = "
    INSERT INTO deployment (environment) VALUES ('sandbox');
    INSERT INTO partners (partner_id, name, allowlist) VALUES ('00000000-0000-0000-0000-000000000009', 'A partner', '{}');
    INSERT INTO webhooks (partner_id, webhook_id, url, enabled, secret)
    VALUES ('00000000-0000-0000-0000-000000000009', '00000000-0000-0000-0000-000000000001', 'https://old.example/', true, 'old');
    INSERT INTO webhook_progress (partner_id, webhook_id, cursor, due_at)
    VALUES ('00000000-0000-0000-0000-000000000009', '00000000-0000-0000-0000-000000000001', 0, now());";

/// The statements of a move, in their order.
const MOVE: &str = "
    BEGIN;
    SELECT FROM webhooks FOR NO KEY UPDATE;
    UPDATE webhooks SET url = 'https://new.example/', secret = 'new';
    UPDATE webhook_progress SET lease = lease + 1, leased_until = NULL;";

const HAS_WAITING_STATEMENT: &str = "SELECT EXISTS (
        SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')";

#[tokio::test(flavor = "multi_thread")]
async fn lease_that_waited_for_a_move_delivers_to_the_new_url() {
    let database = Database::create().await;
    let mut mover = database.connect().await;
    // Of a superuser: others do not see what the service's role waits for. In the open transaction of the
    // move the view would not change.
    let mut observer = PgConnection::connect_with(&database.superuser_options())
        .await
        .unwrap();
    mover.execute(INSERT_ENDPOINT).await.unwrap();
    let store = PgStore::open(database.service_options(), Handle::current());
    let node = PgNode::start(&store.database, "one".to_owned()).await.unwrap();
    let outbox = PgOutbox::new(&node);
    mover.execute(MOVE).await.unwrap();
    let webhook_id = WebhookId::from_uuid(Uuid::from_u128(1));
    let mut leased = JoinSet::new();
    leased.spawn(async move { outbox.lease(webhook_id).await });
    eventually("the lease to wait for the move", WAIT_TIMEOUT, async || {
        let waiting = sqlx::query_scalar::<_, bool>(HAS_WAITING_STATEMENT);
        waiting.fetch_one(&mut observer).await.unwrap().then_some(())
    })
    .await;
    mover.execute("COMMIT").await.unwrap();
    let leased = leased
        .join_next()
        .await
        .unwrap()
        .unwrap()
        .unwrap()
        .expect("a delivery is due");
    assert_eq!(
        (leased.target.url.as_str(), &leased.target.secret.0[..]),
        ("https://new.example/", &b"new"[..])
    );
    drop(node);
    database.remove().await;
}
