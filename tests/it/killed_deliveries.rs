//! Webhook delivery with a kill at each point: every event arrives under its feed id and in order per order,
//! and recorded deliveries are not repeated.
//!
//! | kill point | how the test reaches it |
//! |---|---|
//! | committed, poller not notified | a lock on the tables; the statement sent to Postgres proceeds after the kill |
//! | endpoint leased, nothing sent | a lock on the table that is read next |
//! | sent, no response | the receiver withholds its response |
//! | response received, result not recorded | a lock on the row that is written next; afterwards the statement proceeds or its session is terminated |
//! | recorded | the row shows it |

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::deliveries::register_webhook;
use crate::killed_operations::{StatementOutcome, TERMINATE_BLOCKED};
use vouchsafe_test_harness::{
    Behavior, Instance, Operator, Partner, ReceivedEvent, Receiver, Sale, ServiceDatabase, WAIT_TIMEOUT,
    eventually, expect_success,
};

/// `order.created`, `voucher.issued`, `order.delivered`.
const EVENTS_PER_ORDER: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KillPoint {
    Committed,
    Leased,
    Sent,
    Answered(u16, StatementOutcome),
    Recorded,
}

/// Each kill point and the total number of times that the order's first event is sent.
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

/// Sessions blocked in a statement that matches `$1`.
const COUNT_BLOCKED: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ $1";

const COUNT_CAUGHT_UP: &str = "SELECT count(*)
                         FROM webhook_progress AS p
                         JOIN feeds AS f ON f.partner_id = p.partner_id AND f.last_number = p.cursor
                        WHERE $1 = ''";

/// A service with one partner, endpoint and receiver.
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
        let receiver = Receiver::start();
        register_webhook(&mut partner, &receiver, &json!({})).await;
        Self {
            service,
            partner,
            sale,
            receiver,
        }
    }

    /// Places an order under this key and kills the service when its events reach this point.
    async fn kill_at(&mut self, point: KillPoint, key: &str) {
        let mut locker = ServiceDatabase::of(&self.service).await;
        let mut observer = ServiceDatabase::of(&self.service).await;
        let received_count = self.receiver.received().len();
        let order = async |partner: &mut Partner, sale: &Sale| {
            expect_success(&partner.order_with_key(key, sale, 1).await, 201);
        };
        match point {
            KillPoint::Committed => {
                begin_with_lock(&mut locker, "LOCK TABLE orders, idempotency_keys IN SHARE MODE").await;
                let mut partner = self.partner.reconnect();
                let body = vouchsafe_test_harness::order_body(&self.sale, 1).to_string();
                tokio::select! {
                    result = partner.client.order(key, body) => panic!("response before the commit: {result:?}"),
                    () = wait_until_blocked(&mut observer, "commit_batch") => {}
                }
            }
            KillPoint::Leased => {
                begin_with_lock(&mut locker, "LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE").await;
                order(&mut self.partner, &self.sale).await;
                wait_until_blocked(&mut observer, "rows_ahead").await;
            }
            KillPoint::Sent => {
                self.receiver.set_behavior(Behavior::HoldUntilChanged);
                order(&mut self.partner, &self.sale).await;
                self.receiver.wait_for_events(received_count + 1);
            }
            KillPoint::Answered(status, _) => {
                self.receiver.set_behavior(Behavior::HoldUntilChanged);
                order(&mut self.partner, &self.sale).await;
                self.receiver.wait_for_events(received_count + 1);
                begin_with_lock(&mut locker, "SELECT FROM webhook_progress FOR UPDATE").await;
                self.receiver.set_behavior(Behavior::Status(status));
                wait_until_blocked(&mut observer, "SET cursor").await;
            }
            KillPoint::Recorded => {
                order(&mut self.partner, &self.sale).await;
                eventually("the delivery to be recorded", WAIT_TIMEOUT, async || {
                    (observer.count(COUNT_CAUGHT_UP, "").await == 1).then_some(())
                })
                .await;
            }
        }
        self.service.kill();
        if let KillPoint::Answered(_, StatementOutcome::NotWritten) | KillPoint::Leased = point {
            observer.run(TERMINATE_BLOCKED.to_owned()).await;
        }
        locker.run("COMMIT".to_owned()).await;
        self.receiver.set_behavior(Behavior::Status(204));
        self.service.restart();
        self.partner = self.partner.connect_to(&self.service.base_url());
    }

    /// Waits until the last event of this order has arrived.
    async fn wait_for_last_event(&mut self, order_id: &str) {
        eventually(&format!("all events of {order_id}"), WAIT_TIMEOUT, async || {
            let received_count = self.receiver.received();
            let last = |event: &ReceivedEvent| {
                event.order_id() == order_id && event.sequence() == EVENTS_PER_ORDER as u64
            };
            received_count.iter().any(last).then_some(())
        })
        .await;
    }
}

async fn begin_with_lock(locker: &mut ServiceDatabase, lock: &str) {
    locker.run(format!("BEGIN; {lock}")).await;
}

async fn wait_until_blocked(observer: &mut ServiceDatabase, statement: &str) {
    eventually("the statement to be blocked", WAIT_TIMEOUT, async || {
        (observer.count(COUNT_BLOCKED, statement).await > 0).then_some(())
    })
    .await;
}

/// Returns the number of receipts of each event of the order; asserts their order and content.
fn receipts_per_event(received_count: &[ReceivedEvent], order_id: &str, feed: &[Value]) -> Vec<usize> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for event in received_count.iter().filter(|event| event.order_id() == order_id) {
        assert!(
            feed.contains(&event.body()),
            "event differs from the feed: {}",
            event.body_text
        );
        let result = counts.len() as u64;
        assert!(
            event.sequence() <= result + 1,
            "{} of {order_id} after {result}",
            event.sequence()
        );
        *counts.entry(event.sequence()).or_default() += 1;
    }
    counts.into_values().collect()
}

#[tokio::test]
async fn kill_at_any_point_delivers_in_order_without_repeating_recorded() {
    let mut scenario = DeliveryScenario::start().await;
    for (number, (point, times)) in KILL_POINTS.into_iter().enumerate() {
        let key = format!("point-{number}");
        scenario.kill_at(point, &key).await;
        let response = scenario.partner.order_with_key(&key, &scenario.sale, 1).await;
        let order = expect_success(&response, 201);
        let order_id = order["order_id"].as_str().unwrap();
        scenario.wait_for_last_event(order_id).await;
        // A repeated event would arrive before the events of this order.
        let next = expect_success(&scenario.partner.order(&scenario.sale, 1).await, 201);
        scenario
            .wait_for_last_event(next["order_id"].as_str().unwrap())
            .await;
        let feed = scenario.partner.list_all("/events?limit=100").await;
        let counts = receipts_per_event(&scenario.receiver.received(), order_id, &feed);
        assert_eq!(
            (counts.len(), counts[0]),
            (EVENTS_PER_ORDER, times),
            "{point:?}: {counts:?}"
        );
    }
    assert_eq!(scenario.service.stop(), Some(0));
    scenario.service.assert_verified();
}
