//! Log of delivery attempts: partitions, purge, filters and pages.

use std::sync::Arc;

use sqlx::{Connection as _, Executor as _, PgConnection};
use time::macros::datetime;
use time::{Duration, OffsetDateTime};
use tokio::runtime::Handle;
use vouchsafe_domain::delivery::attempt::{AttemptFilter, AttemptResult, EndedAttempt, LoggedAttempt};
use vouchsafe_domain::delivery::view::DeliveryFilter;
use vouchsafe_domain::delivery::{
    AttemptOutcome, CommittedEvents, DeliveryAttempt, DeliveryFault, WebhookEvent,
};
use vouchsafe_domain::event_kind::EventKind;
use vouchsafe_domain::ids::{AttemptId, DeliveryId, PartnerId, WebhookId};
use vouchsafe_domain::period::Period;
use vouchsafe_simulation::build::{event_bundle, numbered_order_id};
use vouchsafe_store::{PartitionChanges, PgStore, WebhookHours};
use vouchsafe_test_harness::{Database, WAIT_TIMEOUT, eventually};
use vouchsafe_verify as verify;

const NOON: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);

fn partner() -> PartnerId {
    PartnerId::from_uuid(uuid::Uuid::from_u128(9))
}

fn webhook(number: u128) -> WebhookId {
    WebhookId::from_uuid(uuid::Uuid::from_u128(number))
}

/// An attempt at the first or second event of an order. The first event of order `n` has the number `2n - 1`.
fn attempt(
    webhook_id: WebhookId,
    order: u32,
    sequence: u32,
    at: OffsetDateTime,
) -> (AttemptId, EndedAttempt) {
    let number = i64::from(order) * 2 - 2 + i64::from(sequence);
    let events = CommittedEvents {
        partner_id: partner(),
        first_number: number,
        bundle: event_bundle(order, sequence),
        created_at: NOON,
    };
    let ended = EndedAttempt {
        webhook_id,
        event: WebhookEvent {
            events: Arc::new(events),
            number,
        },
        order_id: numbered_order_id(order),
        number: 1,
        outcome: AttemptOutcome::Delivered,
        attempt: DeliveryAttempt {
            at,
            latency_ms: 7,
            status: Some(204),
            fault: None,
            answer: String::new(),
        },
        retry_at: None,
    };
    (AttemptId::generate_at(at), ended)
}

fn failed(entry: (AttemptId, EndedAttempt)) -> (AttemptId, EndedAttempt) {
    let (id, ended) = entry;
    let ended = EndedAttempt {
        outcome: AttemptOutcome::Failed(None),
        attempt: DeliveryAttempt {
            status: None,
            fault: Some(DeliveryFault::Timeout),
            ..ended.attempt
        },
        retry_at: Some(NOON + Duration::HOUR),
        ..ended
    };
    (id, ended)
}

async fn list(store: &PgStore, filter: AttemptFilter) -> Vec<LoggedAttempt> {
    store
        .deliveries
        .list_attempts(webhook(1), filter, None, 100)
        .await
        .unwrap()
}

fn counts(hours: &[WebhookHours]) -> Vec<(OffsetDateTime, i64, i64)> {
    hours
        .iter()
        .map(|hour| (hour.at, hour.delivered, hour.failed))
        .collect()
}

async fn count_partitions(database: &Database) -> i64 {
    let count = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'delivery_attempts'::regclass";
    sqlx::query_scalar(count)
        .fetch_one(&mut database.connect().await)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_are_filtered_and_paged_newest_first() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    let minute = |minute| NOON + Duration::minutes(minute);
    let entries: Vec<_> = vec![
        failed(attempt(webhook(1), 1, 1, minute(1))),
        attempt(webhook(1), 1, 1, minute(2)),
        attempt(webhook(1), 1, 2, minute(3)),
        attempt(webhook(1), 2, 1, NOON + Duration::days(2)),
        attempt(webhook(2), 1, 1, minute(1)),
    ];
    let ids: Vec<_> = entries.iter().map(|(id, _)| *id).collect();
    let entries: Arc<[_]> = entries.into();
    // The partitions of both days are missing. A repeated write, whose first outcome was lost, adds nothing.
    for _ in 0..2 {
        store
            .deliveries
            .insert_attempts(Arc::clone(&entries))
            .await
            .unwrap();
    }
    assert_eq!(count_partitions(&database).await, 2);
    let hours = |step| {
        store
            .webhook_health
            .list(webhook(1), minute(59), NOON + Duration::days(3), step)
    };
    let expected = [(NOON, 2, 1), (NOON + Duration::days(2), 1, 0)];
    assert_eq!(
        counts(&hours(1).await.unwrap()),
        expected,
        "from the beginning of its hour, each attempt once"
    );
    assert_eq!(
        counts(&hours(72).await.unwrap())
            .iter()
            .map(|(_, delivered, failed)| delivered + failed)
            .sum::<i64>(),
        4
    );
    let delivery = DeliveryId::from_uuid(uuid::Uuid::from_u128(5));
    let row = "
        INSERT INTO deliveries (partner_id, webhook_id, number, delivery_id, order_id, state, attempts, next_at, give_up_at, event_at)
        VALUES ('00000000-0000-0000-0000-000000000009', '00000000-0000-0000-0000-000000000001', 1,
                '00000000-0000-0000-0000-000000000005', '00000000-0000-0000-0000-000000000001', 'DELIVERED', 1, now(), now(), now())";
    database.connect().await.execute(row).await.unwrap();

    let all = list(&store, AttemptFilter::default()).await;
    let listed: Vec<_> = all.iter().map(|attempt| attempt.attempt_id).collect();
    assert_eq!(listed, [ids[3], ids[2], ids[1], ids[0]], "of this endpoint only");
    let oldest = &all[3];
    assert_eq!(
        (
            oldest.outcome,
            oldest.fault,
            oldest.at,
            oldest.next_attempt_at,
            oldest.delivery_id
        ),
        (
            AttemptResult::Failed,
            Some(DeliveryFault::Timeout),
            minute(1),
            Some(NOON + Duration::HOUR),
            Some(delivery)
        )
    );
    assert_eq!(
        (all[1].event, all[1].delivery_id),
        (EventKind::OrderProcessing, None)
    );

    let any = AttemptFilter::default();
    let outcome = |outcome| AttemptFilter {
        outcome: Some(outcome),
        ..any
    };
    let period = |from, to| AttemptFilter {
        period: Period { from, to },
        ..any
    };
    for (filter, expected) in [
        (outcome(AttemptResult::Failed), vec![0]),
        (outcome(AttemptResult::Delivered), vec![3, 2, 1]),
        (
            AttemptFilter {
                event: Some(EventKind::OrderProcessing),
                ..any
            },
            vec![2],
        ),
        (
            AttemptFilter {
                order_id: Some(numbered_order_id(1)),
                ..any
            },
            vec![2, 1, 0],
        ),
        (
            AttemptFilter {
                delivery_id: Some(delivery),
                ..any
            },
            vec![1, 0],
        ),
        (
            AttemptFilter {
                delivery_id: Some(DeliveryId::from_uuid(uuid::Uuid::nil())),
                ..any
            },
            vec![],
        ),
        (period(Some(minute(2)), None), vec![3, 2, 1]),
        (period(Some(minute(1)), Some(minute(2))), vec![0]),
    ] {
        let listed: Vec<_> = list(&store, filter)
            .await
            .iter()
            .map(|attempt| attempt.attempt_id)
            .collect();
        let expected: Vec<_> = expected.into_iter().map(|index: usize| ids[index]).collect();
        assert_eq!(listed, expected, "{filter:?}");
    }
    let page = store
        .deliveries
        .list_attempts(webhook(1), any, Some(ids[2]), 1)
        .await
        .unwrap();
    assert_eq!(
        page.iter().map(|attempt| attempt.attempt_id).collect::<Vec<_>>(),
        [ids[1]]
    );
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn old_partitions_are_dropped_by_one_node_and_never_wait_for_a_reader() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    let today = "SELECT date_trunc('day', now(), 'UTC')";
    let today: OffsetDateTime = sqlx::query_scalar(today)
        .fetch_one(&mut database.connect().await)
        .await
        .unwrap();
    // A day of margin: another one may begin meanwhile.
    let at = |days| today - Duration::days(days);
    let age = |days| attempt(webhook(1), 1, 1, at(days));
    let entries: Arc<[_]> = [age(31), age(29), age(0)].into();
    store.deliveries.insert_attempts(entries).await.unwrap();
    let maintain = || store.deliveries.maintain_attempt_partitions(30);

    let mut reader = database.connect().await;
    reader
        .execute("BEGIN; SELECT count(*) FROM delivery_attempts")
        .await
        .unwrap();
    let busy = PartitionChanges { dropped: 0, busy: 1 };
    assert_eq!(maintain().await.unwrap(), busy, "the reader keeps the partition");
    let partitions = count_partitions(&database).await;
    assert!(
        partitions >= 6,
        "31 and 29 days, today and three ahead: {partitions}"
    );
    reader.execute("COMMIT").await.unwrap();

    let (one, other) = tokio::join!(maintain(), maintain());
    let dropped = one.unwrap().dropped + other.unwrap().dropped;
    assert_eq!(dropped, 1, "two nodes drop a partition once");
    store.webhook_health.remove_old().await.unwrap();
    let hours = store
        .webhook_health
        .list(webhook(1), at(40), at(-1), 1)
        .await
        .unwrap();
    assert_eq!(counts(&hours), [(at(29), 1, 0), (at(0), 1, 0)]);
    let kept: Vec<_> = list(&store, AttemptFilter::default())
        .await
        .iter()
        .map(|attempt| attempt.at)
        .collect();
    assert_eq!(kept, [at(0), at(29)]);
    let findings = verify::check(&mut database.connect().await).await.unwrap();
    assert!(findings.iter().all(|finding| finding.holds), "{findings:?}");
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn partition_that_another_node_creates_meanwhile_is_no_error() {
    let database = Database::create().await;
    let create = "SELECT create_attempt_partition_v1('2099-01-01')";
    let mut other = database.connect().await;
    other.execute("BEGIN").await.unwrap();
    other.execute(create).await.unwrap();
    let mut node = PgConnection::connect_with(&database.service_options())
        .await
        .unwrap();
    let mut observer = database.connect().await;
    let (created, ()) = tokio::join!(node.execute(create), async {
        let waits = "SELECT count(*) FROM pg_locks JOIN pg_database AS d ON d.oid = database
                      WHERE locktype = 'advisory' AND NOT granted AND d.datname = current_database()";
        eventually("the node to wait for the other one", WAIT_TIMEOUT, async || {
            let waiting = sqlx::query_scalar::<_, i64>(waits).fetch_one(&mut observer).await;
            (waiting.unwrap() > 0).then_some(())
        })
        .await;
        other.execute("COMMIT").await.map(drop).unwrap();
    });
    created.unwrap();
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn next_attempt_is_never_past_and_a_disabled_endpoint_has_none() {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    let mut connection = database.connect().await;
    let rows = "
        INSERT INTO webhooks (partner_id, webhook_id, url, enabled, secret)
        VALUES ('00000000-0000-0000-0000-000000000009', '00000000-0000-0000-0000-000000000001', 'http://127.0.0.1', true, '');
        INSERT INTO webhook_progress (partner_id, webhook_id, cursor, due_at)
        VALUES ('00000000-0000-0000-0000-000000000009', '00000000-0000-0000-0000-000000000001', 0, '2026-01-01');
        INSERT INTO deliveries (partner_id, webhook_id, number, delivery_id, order_id, state, attempts, next_at, give_up_at, event_at)
        VALUES ('00000000-0000-0000-0000-000000000009', '00000000-0000-0000-0000-000000000001', 1,
                '00000000-0000-0000-0000-000000000005', '00000000-0000-0000-0000-000000000001', 'WAITING', 1, '2026-01-01',
                'infinity', now())";
    connection.execute(rows).await.unwrap();
    let next_attempts = async || {
        let deliveries = store.deliveries.list(DeliveryFilter::default(), None, 9).await;
        let endpoint = store
            .webhooks
            .find(Some(partner()), webhook(1))
            .await
            .unwrap()
            .unwrap();
        [deliveries.unwrap()[0].next_attempt_at, endpoint.next_attempt_at]
    };
    let before: OffsetDateTime = sqlx::query_scalar("SELECT now()")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    for next in next_attempts().await {
        assert!(next.unwrap() >= before, "{next:?} is due at {before}");
    }
    let disable = "UPDATE webhooks SET enabled = false, disabled_reason = 'PARTNER', disabled_at = now()";
    connection.execute(disable).await.unwrap();
    assert_eq!(next_attempts().await, [None; 2]);
    connection.close().await.unwrap();
    database.remove().await;
}
