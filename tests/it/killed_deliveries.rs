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
    Database, Heard, Instance, Mood, Operator, Partner, Receiver, SOON, Sale, accepted, eventually,
};

/// Created, issued, delivered.
const EVENTS: usize = 3;

/// What becomes of the statement that was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Written,
    NotWritten,
}

/// Where it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    Committed,
    Taken,
    Sent,
    Answered(u16, Fate),
    WrittenDown,
}

/// Each point, and how often the order's first event is sent in all.
const POINTS: [(Point, usize); 8] = [
    (Point::Committed, 1),
    (Point::Taken, 1),
    (Point::Sent, 2),
    (Point::Answered(204, Fate::Written), 1),
    (Point::Answered(204, Fate::NotWritten), 2),
    (Point::Answered(500, Fate::Written), 2),
    (Point::Answered(500, Fate::NotWritten), 2),
    (Point::WrittenDown, 1),
];

/// Sessions that wait for somebody in a statement like this.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ $1";

const SEEN_TO: &str = "SELECT count(*)
                         FROM webhook_progress AS p
                         JOIN feeds AS f ON f.partner_id = p.partner_id AND f.last_number = p.cursor
                        WHERE $1 = ''";

const END_THE_WAITING: &str =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";

/// A service with one partner, its endpoint and its receiver.
struct Scene {
    service: Instance,
    partner: Partner,
    sale: Sale,
    receiver: Receiver,
}

impl Scene {
    async fn begin() -> Self {
        let service = Instance::start();
        let mut operator = Operator::of(&service);
        let sale = operator.sale(2 * POINTS.len()).await;
        let mut partner = operator.partner("10000").await;
        let receiver = Receiver::new();
        let body = json!({ "url": receiver.url() }).to_string();
        accepted(&partner.signed(Method::POST, "/webhooks", &body).await, 201);
        Self {
            service,
            partner,
            sale,
            receiver,
        }
    }

    /// Places an order under this key, and kills the service where its events are at this point.
    async fn kill_at(&mut self, point: Point, key: &str) {
        let mut somebody = Database::of(&self.service).await;
        let mut beside = Database::of(&self.service).await;
        let heard = self.receiver.heard().len();
        let order = async |partner: &mut Partner, sale: &Sale| {
            accepted(&partner.order_under(key, sale, 1).await, 201);
        };
        match point {
            Point::Committed => {
                stand_on(&mut somebody, "LOCK TABLE orders, idempotency_keys IN SHARE MODE").await;
                let mut partner = self.partner.again();
                let body = crate::support::order_of(&self.sale, 1).to_string();
                tokio::select! {
                    came = partner.client.order(key, body) => panic!("answered before it was written: {came:?}"),
                    () = until_waits(&mut beside, "commit_batch") => {}
                }
            }
            Point::Taken => {
                stand_on(&mut somebody, "LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE").await;
                order(&mut self.partner, &self.sale).await;
                until_waits(&mut beside, "rows_ahead").await;
            }
            Point::Sent => {
                self.receiver.is(Mood::Holds);
                order(&mut self.partner, &self.sale).await;
                self.receiver.hears(heard + 1);
            }
            Point::Answered(status, _) => {
                self.receiver.is(Mood::Holds);
                order(&mut self.partner, &self.sale).await;
                self.receiver.hears(heard + 1);
                stand_on(&mut somebody, "SELECT FROM webhook_progress FOR UPDATE").await;
                self.receiver.is(Mood::Says(status));
                until_waits(&mut beside, "SET cursor").await;
            }
            Point::WrittenDown => {
                order(&mut self.partner, &self.sale).await;
                eventually("it is written down", SOON, async || {
                    (beside.count(SEEN_TO, "").await == 1).then_some(())
                })
                .await;
            }
        }
        self.service.kill();
        if let Point::Answered(_, Fate::NotWritten) | Point::Taken = point {
            beside.run(END_THE_WAITING.to_owned()).await;
        }
        somebody.run("COMMIT".to_owned()).await;
        self.receiver.is(Mood::Says(204));
        self.service.restart();
        self.partner = self.partner.at(&self.service.base_url());
    }

    /// Waits until each event of this order has come.
    async fn arrives(&mut self, order_id: &str) {
        eventually(&format!("all of {order_id} arrives"), SOON, async || {
            let heard = self.receiver.heard();
            let last = |one: &Heard| one.order_id() == order_id && one.sequence() == EVENTS as u64;
            heard.iter().any(last).then_some(())
        })
        .await;
    }
}

async fn stand_on(somebody: &mut Database, lock: &str) {
    somebody.run(format!("BEGIN; {lock}")).await;
}

async fn until_waits(beside: &mut Database, statement: &str) {
    eventually("the statement waits", SOON, async || {
        (beside.count(WAITING, statement).await > 0).then_some(())
    })
    .await;
}

/// How often each event of the order came, in sequence; each as the feed has it.
fn counted(heard: &[Heard], order_id: &str, feed: &[Value]) -> Vec<usize> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for one in heard.iter().filter(|one| one.order_id() == order_id) {
        assert!(
            feed.contains(&one.body()),
            "the same id and the same event: {}",
            one.text
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
    let mut scene = Scene::begin().await;
    for (number, (point, times)) in POINTS.into_iter().enumerate() {
        let key = format!("point-{number}");
        scene.kill_at(point, &key).await;
        let order = accepted(&scene.partner.order_under(&key, &scene.sale, 1).await, 201);
        let order_id = order["order_id"].as_str().unwrap();
        scene.arrives(order_id).await;
        // What would be sent again goes before what comes now.
        let next = accepted(&scene.partner.order(&scene.sale, 1).await, 201);
        scene.arrives(next["order_id"].as_str().unwrap()).await;
        let feed = scene.partner.walk("/events?limit=100").await;
        let counts = counted(&scene.receiver.heard(), order_id, &feed);
        assert_eq!(
            (counts.len(), counts[0]),
            (EVENTS, times),
            "{point:?}: {counts:?}"
        );
    }
    assert_eq!(scene.service.stop(), Some(0));
    scene.service.assert_verified();
}
