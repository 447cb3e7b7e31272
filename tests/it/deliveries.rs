//! Deliveries to real receivers: what arrives, in which order, what is tried again, and what a crash costs.

use std::collections::BTreeMap;
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{
    ReceivedEvent, Instance, Behavior, Operator, Partner, Receiver, WAIT_TIMEOUT, expect_success, eventually, expect_error, shared, unique,
};

/// Registers an endpoint of the partner.
async fn register_webhook(partner: &mut Partner, receiver: &Receiver, more: &Value) -> Value {
    let mut body = json!({ "url": receiver.url() });
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    let answer = partner.send_signed(Method::POST, "/webhooks", &body.to_string()).await;
    expect_success(&answer, 201)
}

async fn webhook_state(partner: &mut Partner) -> Value {
    partner.read("/webhooks").await["data"][0].clone()
}

/// Each order's events came in sequence, the first time each came.
fn assert_in_sequence(heard: &[ReceivedEvent]) {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for one in heard {
        let last = seen.entry(one.order_id()).or_default();
        if one.sequence() > *last {
            assert_eq!(one.sequence(), *last + 1, "of {}", one.order_id());
            *last += 1;
        }
    }
}

#[tokio::test]
async fn what_happens_arrives_signed_in_sequence_and_as_the_feed_has_it() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(20).await;
    let mut partner = operator.add_partner("1000").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let receiver = Receiver::new();
    let made = register_webhook(&mut partner, &receiver, &json!({})).await;
    for quantity in 1..=3 {
        expect_success(&partner.order(&sale, quantity).await, 201);
    }
    let heard = receiver.wait_for_events(12);
    assert_eq!(heard.len(), 12, "from the registration on");
    assert_in_sequence(&heard);
    let feed = partner.list_all("/events").await;
    for one in &heard {
        one.assert_signed(&[made["secret"].as_str().unwrap()]);
        assert_eq!(one.headers["content-type"], "application/json");
        assert!(!one.headers.contains_key("x-vouchsafe-test"));
        assert!(feed.contains(&one.body()), "{}", one.body_text);
    }
    assert!(
        heard
            .iter()
            .any(|one| one.body_text.contains(r#""total_amount":75.00,"#)),
        "money is exact"
    );
}

#[tokio::test]
async fn an_endpoint_gets_what_it_asks_for_and_nothing_when_it_is_off() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(20).await;
    let mut partner = operator.add_partner("1000").await;
    let [some, off] = [Receiver::new(), Receiver::new()];
    register_webhook(&mut partner, &some, &json!({ "events": ["order.delivered"] })).await;
    register_webhook(&mut partner, &off, &json!({ "enabled": false })).await;
    expect_success(&partner.order(&sale, 2).await, 201);
    expect_success(&partner.order(&sale, 2).await, 201);
    let heard = some.wait_for_events(2);
    assert!(heard.iter().all(|one| one.event() == "order.delivered"));
    let on = json!({ "url": off.url(), "enabled": true }).to_string();
    expect_success(&partner.send_signed(Method::POST, "/webhooks", &on).await, 200);
    assert_in_sequence(&off.wait_for_events(8));
    assert_eq!(some.received().len(), 2);
}

#[tokio::test]
async fn what_is_not_taken_is_tried_again_and_its_order_waits_for_it() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(5).await;
    let mut partner = operator.add_partner("1000").await;
    let receiver = Receiver::new();
    receiver.set_behavior(Behavior::Status(500));
    register_webhook(&mut partner, &receiver, &json!({})).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let first = receiver.wait_for_events(1).remove(0);
    let failing = eventually("it is failing", WAIT_TIMEOUT, async || {
        Some(webhook_state(&mut partner).await).filter(|state| state["status"] == "failing")
    });
    let failing = failing.await;
    assert!(failing["failing_since"].is_string() && failing["next_attempt_at"].is_string());
    let mut operator = Operator::of(shared());
    let path = format!("/admin/v1/deliveries?partner_id={}", partner.partner_id);
    let deliveries = operator.get(&path).await;
    let waiting = &deliveries["data"];
    let behind = waiting.as_array().unwrap().iter();
    assert_eq!(behind.filter(|one| one["next_attempt_at"].is_null()).count(), 2);
    receiver.set_behavior(Behavior::Status(204));
    let heard = receiver.wait_for_events(4);
    assert_eq!(heard[1].event_id(), first.event_id(), "the same event");
    let gap = heard[1].received_at - first.received_at;
    assert!(
        gap >= Duration::from_millis(4_900) && gap < Duration::from_secs(8),
        "{gap:?}"
    );
    assert_ne!(
        heard[1].headers["webhook-timestamp"],
        first.headers["webhook-timestamp"]
    );
    assert_in_sequence(&heard);
    eventually("it is active", WAIT_TIMEOUT, async || {
        (webhook_state(&mut partner).await["status"] == "active").then_some(())
    })
    .await;
    let deliveries = operator.get(&path).await;
    let attempts: Vec<_> = deliveries["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["event_id"] == first.event_id())
        .flat_map(|one| one["attempts"].as_array().unwrap().clone())
        .map(|attempt| (attempt["status"].clone(), attempt["answer"].clone()))
        .collect();
    assert_eq!(attempts, [(json!(500), json!("heard")), (json!(204), json!(""))]);
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_switched_off_with_a_reason_and_on_again_by_an_operator() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(5).await;
    let mut partner = operator.add_partner("1000").await;
    let receiver = Receiver::new();
    receiver.set_behavior(Behavior::Status(410));
    let made = register_webhook(&mut partner, &receiver, &json!({})).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let off = eventually("it is switched off", WAIT_TIMEOUT, async || {
        Some(webhook_state(&mut partner).await).filter(|state| state["status"] == "disabled")
    });
    let off = off.await;
    assert_eq!(off["disabled_reason"], "GONE");
    assert!(off["disabled_at"].is_string());
    receiver.set_behavior(Behavior::Status(204));
    let id = made["webhook_id"].as_str().unwrap();
    let on = operator
        .send_json(
            Method::POST,
            &format!("/admin/v1/webhooks/{id}/enable"),
            &json!({}),
        )
        .await;
    assert_eq!(on["status"], "failing", "it has taken nothing yet");
    assert_in_sequence(&receiver.wait_for_events(4));
}

#[tokio::test]
async fn events_are_replayed_one_or_many() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(9).await;
    let mut partner = operator.add_partner("1000").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    expect_success(&partner.order(&sale, 2).await, 201);
    let feed = partner.list_all("/events").await;
    let receiver = Receiver::new();
    let made = register_webhook(&mut partner, &receiver, &json!({})).await;
    let path = format!("/webhooks/{}/replay", made["webhook_id"].as_str().unwrap());
    let one = json!({ "event_id": feed[2]["event_id"] }).to_string();
    let answer = partner.send_signed(Method::POST, &path, &one).await;
    assert_eq!(expect_success(&answer, 202)["replayed"], 1);
    assert_eq!(receiver.wait_for_events(1)[0].body(), feed[2]);
    let span = json!({ "from": feed[0]["created_at"] }).to_string();
    let answer = partner.send_signed(Method::POST, &path, &span).await;
    assert_eq!(expect_success(&answer, 202)["replayed"], 7);
    let heard = receiver.wait_for_events(8);
    assert_in_sequence(&heard[1..]);
    let unknown = json!({ "event_id": format!("evt_{}", "0".repeat(32)) }).to_string();
    expect_error(
        &partner.send_signed(Method::POST, &path, &unknown).await,
        404,
        "EVENT_NOT_FOUND",
    );
    let deliveries = operator
        .get(&format!(
            "/admin/v1/deliveries?webhook_id={}",
            made["webhook_id"].as_str().unwrap()
        ))
        .await;
    let delivery = deliveries["data"][0]["delivery_id"].as_str().unwrap().to_owned();
    let again = operator
        .send_json(
            Method::POST,
            &format!("/admin/v1/deliveries/{delivery}/replay"),
            &json!({}),
        )
        .await;
    assert_eq!(again["status"], "WAITING");
    let heard = receiver.wait_for_events(9);
    assert_eq!(heard[8].event_id(), again["event_id"].as_str().unwrap());
}

/// It is taken by an attempt that began after it was accepted, not by the one that was under way.
#[tokio::test]
async fn a_replay_of_what_is_under_way_is_sent_after_that() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(5).await;
    let mut partner = operator.add_partner("1000").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let feed = partner.list_all("/events").await;
    let receiver = Receiver::new();
    receiver.set_behavior(Behavior::HoldUntilChanged);
    let made = register_webhook(&mut partner, &receiver, &json!({})).await;
    let webhook_id = made["webhook_id"].as_str().unwrap();
    let path = format!("/webhooks/{webhook_id}/replay");
    let one = json!({ "event_id": feed[0]["event_id"] }).to_string();
    for _ in 0..2 {
        let answer = partner.send_signed(Method::POST, &path, &one).await;
        assert_eq!(expect_success(&answer, 202)["replayed"], 1);
        receiver.wait_for_events(1);
    }
    receiver.set_behavior(Behavior::Status(204));
    assert_eq!(receiver.wait_for_events(2)[1].body(), feed[0]);
    let path = format!("/admin/v1/deliveries?webhook_id={webhook_id}");
    let delivered = eventually("it is delivered", WAIT_TIMEOUT, async || {
        let deliveries = operator.get(&path).await;
        Some(deliveries["data"][0].clone()).filter(|one| one["status"] == "DELIVERED")
    });
    let statuses = delivered.await["attempts"].as_array().unwrap().clone();
    let statuses: Vec<_> = statuses.iter().map(|one| one["status"].clone()).collect();
    assert_eq!(statuses, [204, 204]);
    assert_eq!(receiver.received().len(), 2);
}

#[tokio::test]
async fn a_kill_loses_no_event_and_breaks_no_sequence() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(200).await;
    let mut partner = operator.add_partner("100000").await;
    let receiver = Receiver::new();
    receiver.set_behavior(Behavior::DelayedOk(Duration::from_millis(30)));
    register_webhook(&mut partner, &receiver, &json!({})).await;
    for round in 0..3 {
        for _ in 0..15 {
            // A start on a busy machine may take longer than an order waits: its partner repeats it.
            let key = unique("key");
            let answer = eventually("the order", WAIT_TIMEOUT, async || {
                Some(partner.order_with_key(&key, &sale, 1).await).filter(|answer| answer.status != 503)
            });
            expect_success(&answer.await, 201);
        }
        receiver.wait_for_events(5 + round * 20);
        service.kill();
        service.restart();
        partner = partner.connect_to(&service.base_url());
    }
    let feed = partner.list_all("/events?limit=100").await;
    assert_eq!(feed.len(), 3 * 45);
    eventually("all have arrived", WAIT_TIMEOUT, async || {
        let mut ids: Vec<_> = receiver.received().iter().map(ReceivedEvent::event_id).collect();
        ids.sort();
        ids.dedup();
        (ids.len() == feed.len()).then_some(())
    })
    .await;
    assert_in_sequence(&receiver.received());
    assert_eq!(service.stop(), Some(0));
    service.assert_verified();
}

/// Where every core is busy orders come first: the threads of deliveries are nicer than the process, and no others are.
#[test]
fn who_delivers_stands_back() {
    let process = format!("/proc/{}/task", shared().pid());
    let mut threads: Vec<(String, i32)> = std::fs::read_dir(process)
        .unwrap()
        .map(|thread| {
            let stat = std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap();
            // `pid (name) state …`; what follows the name has no parenthesis. The nineteenth field is the niceness.
            let (before, after) = stat.rsplit_once(") ").unwrap();
            let (_, name) = before.split_once('(').unwrap();
            let niceness = after.split(' ').nth(16).unwrap().parse().unwrap();
            (name.to_owned(), niceness)
        })
        .collect();
    let (_, least) = *threads.iter().min_by_key(|(_, niceness)| *niceness).unwrap();
    threads.retain(|(_, niceness)| *niceness > least);
    threads.sort();
    let names: Vec<&str> = threads.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["actix-rt|system", "webhooks", "webhooks"], "{threads:?}");
}
