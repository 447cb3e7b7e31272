//! Query plans of the feed and the outbox: pages use the event number index, also under plans cached for few
//! events.

use std::ops::Range;

use sqlx::AssertSqlSafe;
use tokio::runtime::Handle;
use vouchsafe_actors::delivery::outbox::{FlushRequest, LeaseAction, LeasedEndpoint, Outbox as _};
use vouchsafe_actors::delivery::queue::ReadRequest;
use vouchsafe_domain::ids::{EventId, WebhookId};
use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::{CaseFixture as _, Subject as _};
use vouchsafe_store::{FeedPosition, PgNode, PgOutbox, PgStore};

use super::lock_waits::read_request;
use super::{Fixture, committed_at};
use crate::explain::{EXPLAIN, lock_log, plans, rows_read};
use crate::subject::PgSubject;

/// Number of events when the statement is planned.
const INITIAL_EVENTS: [i64; 2] = [3, 1_000];

const TOTAL_EVENTS: i64 = 50_000;

const PAGE: usize = 100;

/// Two pages, whose rows count twice (scan and join), plus a few.
const MAX_ROWS: f64 = 450.0;

/// A connection caches a generic plan after five executions, and reads may use several connections.
const READS_UNTIL_PLAN_IS_CACHED: usize = 40;

/// A node whose statements are explained.
struct Reader {
    subject: PgSubject,
    webhook_id: WebhookId,
    node: PgNode,
    outbox: PgOutbox,
    opened: LeasedEndpoint,
}

/// Inserts events with these numbers.
pub(super) async fn insert_events(subject: &PgSubject, first: i64, last: i64) {
    let body = serde_json::to_string(&build::event_bundle(1, 1)).unwrap();
    insert_commits(subject, first, last, 1, &body).await;
}

/// Inserts commits of `count` events each, the first with number `first` and none after number `last`.
pub(super) async fn insert_commits(subject: &PgSubject, first: i64, last: i64, count: i32, body: &str) {
    sqlx::query(
        "INSERT INTO events (partner_id, number, count, order_id, first_sequence, body, created_at)
         SELECT $1, i, $6, $2, 1, $3, now() FROM generate_series($4, $5, $6) AS i",
    )
    .bind(build::partner(1).as_uuid())
    .bind(build::numbered_order_id(1).as_uuid())
    .bind(body)
    .bind(first)
    .bind(last)
    .bind(count)
    .execute(subject.pool())
    .await
    .unwrap();
    sqlx::query("UPDATE feeds SET last_number = $1")
        .bind(last)
        .execute(subject.pool())
        .await
        .unwrap();
}

impl Reader {
    async fn open(events: i64) -> Self {
        let subject = PgSubject::new().await;
        let webhook_id = Fixture::create(&subject).await.webhook_id;
        subject.append_event(build::partner(1), 1).await;
        insert_events(&subject, 2, events).await;
        let options = subject.superuser_options().options(EXPLAIN);
        let store = PgStore::open(options, Handle::current());
        let node = PgNode::start(&store.database, "one".to_owned()).await.unwrap();
        let outbox = PgOutbox::new(&node);
        let opened = outbox.lease(webhook_id).await.unwrap().unwrap();
        Self {
            subject,
            webhook_id,
            node,
            outbox,
            opened,
        }
    }

    /// Reads a feed page and an outbox page after an event; returns their lengths.
    async fn read(&self, after: i64) -> (usize, usize) {
        let partner_id = build::partner(1);
        let committed_at = committed_at(self.subject.pool(), after).await;
        let position = FeedPosition::After(EventId::for_number(partner_id, after, committed_at));
        let page = self.node.read_feed(partner_id, position, PAGE).await;
        let page = page.unwrap().expect("the event is in the feed");
        let flush = read_request(self.opened.lease, after, PAGE);
        let deliveries = self.outbox.flush(self.webhook_id, flush).await.unwrap();
        let deliveries = deliveries.expect("the lease is held");
        (page.events.len(), deliveries.pending.len())
    }

    /// Asserts that the plans since this position of the log read more than `rows.start` and at most
    /// `rows.end` rows.
    fn assert_rows_read_since(&self, begin: usize, rows: Range<f64>, case: &str) {
        let explained = plans(&self.subject.log()[begin..]);
        let read: f64 = explained.iter().map(|plan| rows_read(&plan["Plan"])).sum();
        assert!(
            read > rows.start && read <= rows.end,
            "{case}: read {read} rows: {explained:#?}"
        );
    }

    /// Inserts deliveries 1 to `count` that wait, each with these times of its next attempt and of giving up.
    async fn insert_waiting(&self, count: i64, next_at: &str, give_up_at: &str) {
        let statement = format!(
            "INSERT INTO deliveries (partner_id, webhook_id, number, delivery_id, order_id, state, attempts, next_at, give_up_at, event_at)
             SELECT $1, $2, i, gen_random_uuid(), gen_random_uuid(), 'WAITING', 1, {next_at}, {give_up_at}, now()
               FROM generate_series(1, $3) AS i"
        );
        sqlx::query(AssertSqlSafe(statement))
            .bind(build::partner(1).as_uuid())
            .bind(self.webhook_id.as_uuid())
            .bind(count)
            .execute(self.subject.pool())
            .await
            .unwrap();
        // As autovacuum does within a minute.
        let analyzed = sqlx::query("ANALYZE deliveries").execute(self.subject.pool());
        analyzed.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn next_events_are_read_by_number_under_early_plans() {
    let _log = lock_log().await;
    for few in INITIAL_EVENTS {
        let reader = Reader::open(few).await;
        for _ in 0..READS_UNTIL_PLAN_IS_CACHED {
            assert_eq!(reader.read(few - 2).await, (2, 2));
        }
        insert_events(&reader.subject, few + 1, TOTAL_EVENTS).await;
        for after in [1, TOTAL_EVENTS / 2, TOTAL_EVENTS - 10] {
            let begin = reader.subject.log().len();
            let left = usize::try_from(TOTAL_EVENTS - after).unwrap();
            assert_eq!(reader.read(after).await, (left.min(PAGE), left.min(64)));
            let case = format!("{few} when planned, after {after}");
            reader.assert_rows_read_since(begin, 0.0..MAX_ROWS, &case);
        }
        reader.subject.remove().await;
    }
}

/// The plan of a lease is made while few endpoints exist, and reads one endpoint when there are many.
#[tokio::test(flavor = "multi_thread")]
async fn lease_reads_one_of_many_endpoints() {
    const FEW_ROWS: f64 = 10.0;
    let _log = lock_log().await;
    let reader = Reader::open(3).await;
    let lease = async || assert!(reader.outbox.lease(reader.webhook_id).await.unwrap().is_none());
    for _ in 0..READS_UNTIL_PLAN_IS_CACHED {
        lease().await;
    }
    sqlx::query(
        "WITH ids AS (SELECT gen_random_uuid() AS id FROM generate_series(1, 20000)),
              progress AS (INSERT INTO webhook_progress (partner_id, webhook_id, cursor) SELECT id, id, 0 FROM ids)
         INSERT INTO webhooks (partner_id, webhook_id, url, enabled, secret) SELECT id, id, id::text, true, '' FROM ids",
    )
    .execute(reader.subject.pool())
    .await
    .unwrap();
    for analysed in [false, true] {
        if analysed {
            let analyze = sqlx::query("ANALYZE webhooks, webhook_progress");
            analyze.execute(reader.subject.pool()).await.unwrap();
        }
        let begin = reader.subject.log().len();
        lease().await;
        reader.assert_rows_read_since(begin, 0.0..FEW_ROWS, &format!("analysed: {analysed}"));
    }
    reader.subject.remove().await;
}

/// After an outage many rows are due at once: a page of them must not cost the whole backlog.
#[tokio::test(flavor = "multi_thread")]
async fn due_rows_of_a_long_backlog_are_read_page_by_page() {
    const ROWS: i64 = 5_000;
    let _log = lock_log().await;
    let reader = Reader::open(ROWS).await;
    reader.insert_waiting(ROWS, "now()", "now()").await;
    let mut begin = 0;
    for _ in 0..READS_UNTIL_PLAN_IS_CACHED {
        begin = reader.subject.log().len();
        assert_eq!(reader.read(ROWS).await, (0, 64));
    }
    reader.assert_rows_read_since(begin, 64.0..MAX_ROWS, "of 64 that are due");
    reader.subject.remove().await;
}

/// A failing endpoint reads few rows at each attempt, however many deliveries wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn failing_endpoint_reads_no_more_than_it_attempts() {
    const ROWS: i64 = 20_000;
    let _log = lock_log().await;
    let reader = Reader::open(3).await;
    insert_events(&reader.subject, 4, ROWS).await;
    reader
        .insert_waiting(ROWS, "now() + interval '1 h'", "now() + i * interval '1 s'")
        .await;
    let request = || FlushRequest {
        lease_action: LeaseAction::Keep(Some(ReadRequest::Oldest {
            after: ROWS,
            limit: 32,
        })),
        ..read_request(reader.opened.lease, ROWS, PAGE)
    };
    let mut begin = 0;
    for _ in 0..READS_UNTIL_PLAN_IS_CACHED {
        begin = reader.subject.log().len();
        let page = reader.outbox.flush(reader.webhook_id, request()).await.unwrap();
        let numbers: Vec<i64> = page
            .unwrap()
            .pending
            .iter()
            .map(|pending| pending.event.number)
            .collect();
        assert_eq!(numbers, (1..=32).collect::<Vec<i64>>(), "those that end first");
    }
    reader.assert_rows_read_since(begin, 32.0..MAX_ROWS, "of 32 that are due");
    reader.subject.remove().await;
}
