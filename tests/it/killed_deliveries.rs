//! What becomes of an order's events when the service is killed on their way? Each arrives, under the id that it has in the
//! feed, and of the order in sequence; and what was written down is not sent again.
//!
//! | point | how it is found |
//! |---|---|
//! | committed, and nobody was told in the process | somebody stands on the tables; what was sent to Postgres is let through after the kill |
//! | the endpoint is taken, and nothing sent | somebody stands on the table that is read next |
//! | sent, and not answered | the receiver holds its answer |
//! | answered, and not written down | somebody has the row that is written next; afterwards the statement is let through, or its session is ended |
//! | written down | the row says so |

use std::collections::BTreeMap;

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{
    Database, ReceivedEvent, Instance, Behavior, Operator, Partner, Receiver, WAIT_TIMEOUT, Sale, expect_success, eventually,
};

/// Created, issued, delivered.
const EVENTS_PER_ORDER: usize = 3;

/// What becomes of the statement that was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatementOutcome {
    Written,
    NotWritten,
}

/// Where it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KillPoint {
    Committed,
    Leased,
    Sent,
    Answered(u16, StatementOutcome),
    Recorded,
}

/// Each point, and how often the order's first event is sent in all.
const KILL_POINTS: [(KillPoint, usize); 8] = [
    (KillPoint::Committed, 1),
    (KillPoint::Leased, 1),
    (KillPoint::Sent, 2),
    (KillPoint::Answered(204, StatementOutcome::Written), 1),
    (KillPoint::Answered(204, StatementOutcome::NotWritten), 2),
    (KillPoint::Answered(500, StatementOutcome::Written), 2),
    (KillPoint::Answered(500, StatementOutcome::NotWritten), 2),
    (KillPoint::Recorded, 1),
];

/// Sessions that wait for somebody in a statement like this.
const COUNT_BLOCKED: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ $1";

const COUNT_CAUGHT_UP: &str = "SELECT count(*)
                         FROM webhook_progress AS p
                         JOIN feeds AS f ON f.partner_id = p.partner_id AND f.last_number = p.cursor
                        WHERE $1 = ''";

const TERMINATE_BLOCKED: &str =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";

/// A service with one partner, its endpoint and its receiver.
struct DeliveryScenario {
    service: Instance,
    partner: Partner,
    sale: Sale,
    receiver: Receiver,
}

impl DeliveryScenario {
    async fn start() -> Self {
        let service = Instance::start();
        let mut operator = Operator::of(&service);
        let sale = operator.add_stocked_product(2 * KILL_POINTS.len()).await;
        let mut partner = operator.add_partner("10000").await;
        let receiver = Receiver::new();
        let body = json!({ "url": receiver.url() }).to_string();
        expect_success(&partner.send_signed(Method::POST, "/webhooks", &body).await, 201);
        Self {
            service,
            partner,
            sale,
            receiver,
        }
    }

    /// Places an order under this key, and kills the service where its events are at this point.
    async fn kill_at(&mut self, point: KillPoint, key: &str) {
        let mut somebody = Database::of(&self.service).await;
        let mut beside = Database::of(&self.service).await;
        let heard = self.receiver.received().len();
        let order = async |partner: &mut Partner, sale: &Sale| {
            expect_success(&partner.order_with_key(key, sale, 1).await, 201);
        };
        match point {
            KillPoint::Committed => {
                begin_with_lock(&mut somebody, "LOCK TABLE orders, idempotency_keys IN SHARE MODE").await;
                let mut partner = self.partner.reconnect();
                let body = crate::support::order_body(&self.sale, 1).to_string();
                tokio::select! {
                    came = partner.client.order(key, body) => panic!("answered before it was written: {came:?}"),
                    () = wait_until_blocked(&mut beside, "commit_batch") => {}
                }
            }
            KillPoint::Leased => {
                begin_with_lock(&mut somebody, "LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE").await;
                order(&mut self.partner, &self.sale).await;
                wait_until_blocked(&mut beside, "rows_ahead").await;
            }
            KillPoint::Sent => {
                self.receiver.set_behavior(Behavior::HoldUntilChanged);
                order(&mut self.partner, &self.sale).await;
                self.receiver.wait_for_events(heard + 1);
            }
            KillPoint::Answered(status, _) => {
                self.receiver.set_behavior(Behavior::HoldUntilChanged);
                order(&mut self.partner, &self.sale).await;
                self.receiver.wait_for_events(heard + 1);
                begin_with_lock(&mut somebody, "SELECT FROM webhook_progress FOR UPDATE").await;
                self.receiver.set_behavior(Behavior::Status(status));
                wait_until_blocked(&mut beside, "SET cursor").await;
            }
            KillPoint::Recorded => {
                order(&mut self.partner, &self.sale).await;
                eventually("it is written down", WAIT_TIMEOUT, async || {
                    (beside.count(COUNT_CAUGHT_UP, "").await == 1).then_some(())
                })
                .await;
            }
        }
        self.service.kill();
        if let KillPoint::Answered(_, StatementOutcome::NotWritten) | KillPoint::Leased = point {
            beside.run(TERMINATE_BLOCKED.to_owned()).await;
        }
        somebody.run("COMMIT".to_owned()).await;
        self.receiver.set_behavior(Behavior::Status(204));
        self.service.restart();
        self.partner = self.partner.connect_to(&self.service.base_url());
    }

    /// Waits until each event of this order has come.
    async fn wait_for_last_event(&mut self, order_id: &str) {
        eventually(&format!("all of {order_id} arrives"), WAIT_TIMEOUT, async || {
            let heard = self.receiver.received();
            let last = |one: &ReceivedEvent| one.order_id() == order_id && one.sequence() == EVENTS_PER_ORDER as u64;
            heard.iter().any(last).then_some(())
        })
        .await;
    }
}

async fn begin_with_lock(somebody: &mut Database, lock: &str) {
    somebody.run(format!("BEGIN; {lock}")).await;
}

async fn wait_until_blocked(beside: &mut Database, statement: &str) {
    eventually("the statement waits", WAIT_TIMEOUT, async || {
        (beside.count(COUNT_BLOCKED, statement).await > 0).then_some(())
    })
    .await;
}

/// How often each event of the order came, in sequence; each as the feed has it.
fn receipts_per_event(heard: &[ReceivedEvent], order_id: &str, feed: &[Value]) -> Vec<usize> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for one in heard.iter().filter(|one| one.order_id() == order_id) {
        assert!(
            feed.contains(&one.body()),
            "the same id and the same event: {}",
            one.body_text
        );
        let came = counts.len() as u64;
        assert!(
            one.sequence() <= came + 1,
            "{} of {order_id} after {came}",
            one.sequence()
        );
        *counts.entry(one.sequence()).or_default() += 1;
    }
    counts.into_values().collect()
}

#[tokio::test]
async fn wherever_it_is_killed_each_event_arrives_in_sequence_and_what_was_written_down_once() {
    let mut scene = DeliveryScenario::start().await;
    for (number, (point, times)) in KILL_POINTS.into_iter().enumerate() {
        let key = format!("point-{number}");
        scene.kill_at(point, &key).await;
        let order = expect_success(&scene.partner.order_with_key(&key, &scene.sale, 1).await, 201);
        let order_id = order["order_id"].as_str().unwrap();
        scene.wait_for_last_event(order_id).await;
        // What would be sent again goes before what comes now.
        let next = expect_success(&scene.partner.order(&scene.sale, 1).await, 201);
        scene.wait_for_last_event(next["order_id"].as_str().unwrap()).await;
        let feed = scene.partner.list_all("/events?limit=100").await;
        let counts = receipts_per_event(&scene.receiver.received(), order_id, &feed);
        assert_eq!(
            (counts.len(), counts[0]),
            (EVENTS_PER_ORDER, times),
            "{point:?}: {counts:?}"
        );
    }
    assert_eq!(scene.service.stop(), Some(0));
    scene.service.assert_verified();
}
