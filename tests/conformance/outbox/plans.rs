//! What is next of a partner's events is found by their numbers, also by a plan that was made when there were few of them.

use std::time::Duration;

use tokio::runtime::Handle;
use vouchsafe::store::{FeedPlace, PgNode, PgOutbox, PgStore};
use vouchsafe_actors::delivery::outbox::{Opened, Outbox as _, Then, Turn};
use vouchsafe_actors::delivery::queue::{Changes, Want};
use vouchsafe_actors::domain::delivery::Health;
use vouchsafe_actors::domain::ids::EventId;
use vouchsafe_actors::testing::memory_outbox::{bundle, order_id};
use vouchsafe_actors::testing::outbox::OutboxSubject as _;

use super::PgOutboxSubject;
use crate::explained::{EXPLAIN, log_to_itself, plans, rows_read};

/// How many there were when it was planned: a page of them, and some.
const FEW: [i64; 2] = [3, 1_000];

const MANY: i64 = 50_000;

const PAGE: usize = 100;

/// Two pages, each of whose rows is counted where it is scanned and where the scan's rows are, and a few beside.
const MOST_ROWS: f64 = 450.0;

/// A connection keeps a plan after it was made five times, and reads may come over more than one.
const UNTIL_KEPT: usize = 40;

/// Reads whose statements are explained.
struct Reader {
    subject: PgOutboxSubject,
    node: PgNode,
    outbox: PgOutbox,
    opened: Opened,
}

/// Adds the events of these numbers.
async fn fill(subject: &PgOutboxSubject, first: i64, last: i64) {
    sqlx::query(
        "INSERT INTO events (partner_id, number, count, order_id, first_sequence, body, created_at)
         SELECT $1, i, 1, $2, 1, $3, now() FROM generate_series($4, $5) AS i",
    )
    .bind(subject.partner_id.as_uuid())
    .bind(order_id(1).as_uuid())
    .bind(serde_json::to_string(&bundle(1, 1)).unwrap())
    .bind(first)
    .bind(last)
    .execute(&subject.pool)
    .await
    .unwrap();
    sqlx::query("UPDATE feeds SET last_number = $1")
        .bind(last)
        .execute(&subject.pool)
        .await
        .unwrap();
}

impl Reader {
    async fn open(events: i64) -> Self {
        let subject = PgOutboxSubject::create().await;
        subject.commit(1).await;
        fill(&subject, 2, events).await;
        let options = subject.database.superuser_options().options(EXPLAIN);
        let store = PgStore::open(options, Handle::current());
        let node = PgNode::start(store, "one".to_owned()).await.unwrap();
        let outbox = PgOutbox::new(&node);
        let opened = outbox.take(subject.webhook_id).await.unwrap().unwrap();
        Self {
            subject,
            node,
            outbox,
            opened,
        }
    }

    /// A page of the feed behind an event, and the deliveries that follow it; how many there were of each.
    async fn read(&self, after: i64) -> (usize, usize) {
        let partner_id = self.subject.partner_id;
        let event_id = EventId::numbered(partner_id, after, self.subject.committed_at(after).await);
        let place = FeedPlace::After(event_id);
        let page = self.node.read_feed(partner_id, place, PAGE).await;
        let page = page.unwrap().expect("the event is in the feed");
        let turn = Turn {
            lease: self.opened.lease,
            number: 1,
            changes: Changes {
                cursor: 0,
                health: Health {
                    failures: 0,
                    step: 0,
                    not_before: Duration::ZERO,
                },
                marks: Vec::new(),
                recovered: false,
            },
            now: Duration::ZERO,
            attempts: Vec::new(),
            delivered: 0,
            refused: 0,
            gone: false,
            wait: None,
            save: false,
            then: Then::Keep(Some(Want::Due { after, most: PAGE })),
        };
        let deliveries = self.outbox.turn(self.subject.webhook_id, turn).await.unwrap();
        let deliveries = deliveries.expect("the lease is held");
        (page.letters.len(), deliveries.pending.len())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_next_is_found_by_its_number_however_early_that_was_planned() {
    let _log = log_to_itself().await;
    for few in FEW {
        let reader = Reader::open(few).await;
        for _ in 0..UNTIL_KEPT {
            assert_eq!(reader.read(few - 2).await, (2, 2));
        }
        fill(&reader.subject, few + 1, MANY).await;
        for after in [1, MANY / 2, MANY - 10] {
            let server = &reader.subject.database;
            let begin = server.log().len();
            let left = usize::try_from(MANY - after).unwrap();
            assert_eq!(reader.read(after).await, (left.min(PAGE), left.min(64)));
            let explained = plans(&server.log()[begin..]);
            let looked: f64 = explained.iter().map(|plan| rows_read(&plan["Plan"])).sum();
            assert!(looked > 0.0, "nothing was explained");
            assert!(
                looked <= MOST_ROWS,
                "{few} when planned, after {after}: looked at {looked} rows: {explained:#?}"
            );
        }
        reader.subject.database.remove().await;
    }
}
