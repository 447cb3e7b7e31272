//! Webhook delivery to real receivers: order, retries, replays and crashes.

use std::collections::BTreeMap;
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};

use crate::metrics::scrape;
use vouchsafe_test_harness::{
    Behavior, Instance, Operator, Partner, ReceivedEvent, Receiver, WAIT_TIMEOUT, eventually, expect_error,
    expect_success, shared, text_of, unique,
};

pub(crate) async fn register_webhook(partner: &mut Partner, receiver: &Receiver, more: &Value) -> Value {
    let mut body = json!({ "url": receiver.url() });
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    let response = partner
        .send_signed(Method::POST, "/webhooks", &body.to_string())
        .await;
    expect_success(&response, 201)
}

async fn webhook_state(partner: &mut Partner) -> Value {
    partner.read("/webhooks").await["data"][0].clone()
}

/// Asserts that the first receipts of each order's events are in sequence.
fn assert_in_sequence(events: &[ReceivedEvent]) {
    let mut last_numbers: BTreeMap<String, u64> = BTreeMap::new();
    for event in events {
        let last = last_numbers.entry(event.order_id()).or_default();
        if event.sequence() > *last {
            assert_eq!(event.sequence(), *last + 1, "of {}", event.order_id());
            *last += 1;
        }
    }
}

#[tokio::test]
async fn events_arrive_signed_in_order_and_match_feed() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(20).await;
    let mut partner = operator.add_partner("1000").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let receiver = Receiver::start();
    let webhook = register_webhook(&mut partner, &receiver, &json!({})).await;
    for quantity in 1..=3 {
        expect_success(&partner.order(&sale, quantity).await, 201);
    }
    let events = receiver.wait_for_events(12);
    assert_eq!(events.len(), 12, "only events after the registration");
    assert_in_sequence(&events);
    let feed = partner.list_all("/events").await;
    for event in &events {
        event.assert_signed(&[webhook["secret"].as_str().unwrap()]);
        assert_eq!(event.headers["content-type"], "application/json");
        assert!(!event.headers.contains_key("x-vouchsafe-test"));
        assert!(feed.contains(&event.body()), "{}", event.body_text);
    }
    assert!(
        events
            .iter()
            .any(|event| event.body_text.contains(r#""total_amount":75.00,"#)),
        "amounts must be exact"
    );
}

#[tokio::test]
async fn endpoint_receives_selected_events_only_while_enabled() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(20).await;
    let mut partner = operator.add_partner("1000").await;
    let [selected, off] = [Receiver::start(), Receiver::start()];
    register_webhook(&mut partner, &selected, &json!({ "events": ["order.delivered"] })).await;
    register_webhook(&mut partner, &off, &json!({ "enabled": false })).await;
    expect_success(&partner.order(&sale, 2).await, 201);
    expect_success(&partner.order(&sale, 2).await, 201);
    let events = selected.wait_for_events(2);
    assert!(events.iter().all(|event| event.event() == "order.delivered"));
    let on = json!({ "url": off.url(), "enabled": true }).to_string();
    expect_success(&partner.send_signed(Method::POST, "/webhooks", &on).await, 200);
    assert_in_sequence(&off.wait_for_events(8));
    assert_eq!(selected.received().len(), 2);
}

/// The backlog has events of all kinds. A failed delivery, and those behind it, have entries instead.
#[tokio::test]
async fn backlog_is_the_number_of_events_not_attempted_yet() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(5).await;
    let mut partner = operator.add_partner("1000").await;
    let [off, failing] = [Receiver::start(), Receiver::start()];
    failing.set_behavior(Behavior::Status(500));
    let settings = json!({ "enabled": false, "events": ["order.cancelled"] });
    let off = register_webhook(&mut partner, &off, &settings).await;
    let failing = register_webhook(&mut partner, &failing, &json!({})).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let path = |webhook: &Value| format!("/admin/v1/webhooks/{}", webhook["webhook_id"].as_str().unwrap());
    let state = operator.get(&path(&off)).await;
    assert_eq!(state["backlog"], json!(3));
    assert!(state["oldest_event_at"].is_string());
    let path = path(&failing);
    let reached = eventually(
        "the failing endpoint to have no backlog",
        WAIT_TIMEOUT,
        async || {
            let state = operator.get(&path).await;
            (state["backlog"] == json!(0)).then_some(state)
        },
    );
    assert!(reached.await["oldest_event_at"].is_null());
    let deliveries = format!("/admin/v1/deliveries?partner_id={}", partner.partner_id);
    let deliveries = operator.get(&deliveries).await;
    assert_eq!(deliveries["data"].as_array().unwrap().len(), 3);
    let help =
        "# HELP vouchsafe_webhook_backlog_age_seconds Age of the oldest event that was not attempted yet";
    assert!(scrape(shared()).await.contains(help));
}

#[tokio::test]
async fn failed_event_is_retried_and_blocks_its_order() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(5).await;
    let mut partner = operator.add_partner("1000").await;
    let receiver = Receiver::start();
    receiver.set_behavior(Behavior::Status(500));
    register_webhook(&mut partner, &receiver, &json!({})).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let first = receiver.wait_for_events(1).remove(0);
    let failed = eventually("an attempt to fail", WAIT_TIMEOUT, async || {
        let state = webhook_state(&mut partner).await;
        let is_planned = state["failing_since"].is_string() && state["next_attempt_at"].is_string();
        is_planned.then_some(state)
    });
    let failed = failed.await;
    assert_eq!(
        failed["status"], "active",
        "an endpoint is failing after five failures in a row"
    );
    let mut operator = Operator::of(shared());
    let path = format!("/admin/v1/deliveries?partner_id={}", partner.partner_id);
    let deliveries = operator.get(&path).await;
    let waiting = &deliveries["data"];
    let blocked = waiting.as_array().unwrap().iter();
    let blocked: Vec<_> = blocked
        .filter(|event| event["event_id"] != first.event_id())
        .map(|event| &event["next_attempt_at"])
        .collect();
    assert_eq!(blocked, [&Value::Null; 2]);
    receiver.set_behavior(Behavior::Status(204));
    let events = receiver.wait_for_events(4);
    assert_eq!(
        events[1].event_id(),
        first.event_id(),
        "the retry must send the same event"
    );
    let delay = events[1].received_at - first.received_at;
    assert!(delay >= Duration::from_millis(4_900), "{delay:?}");
    assert_ne!(
        events[1].headers["webhook-timestamp"],
        first.headers["webhook-timestamp"]
    );
    assert_in_sequence(&events);
    eventually("the endpoint to be active", WAIT_TIMEOUT, async || {
        (webhook_state(&mut partner).await["status"] == "active").then_some(())
    })
    .await;
    let deliveries = operator.get(&path).await;
    let attempts: Vec<_> = deliveries["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["event_id"] == first.event_id())
        .flat_map(|event| event["attempts"].as_array().unwrap().clone())
        .map(|attempt| (attempt["status"].clone(), attempt["answer"].clone()))
        .collect();
    // A slow machine changes the behavior after more than one failure.
    let (last, failures) = attempts.split_last().unwrap();
    assert_eq!(*last, (json!(204), json!("")));
    let failure = (json!(500), json!("heard"));
    assert!(
        !failures.is_empty() && failures.iter().all(|attempt| *attempt == failure),
        "{failures:?}"
    );
}

#[tokio::test]
async fn endpoint_returning_410_is_disabled_until_operator_enables_it() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(5).await;
    let mut partner = operator.add_partner("1000").await;
    let receiver = Receiver::start();
    receiver.set_behavior(Behavior::Status(410));
    let webhook = register_webhook(&mut partner, &receiver, &json!({})).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let off = eventually("the endpoint to be disabled", WAIT_TIMEOUT, async || {
        Some(webhook_state(&mut partner).await).filter(|state| state["status"] == "disabled")
    });
    let off = off.await;
    assert_eq!(off["disabled_reason"], "GONE");
    assert!(off["disabled_at"].is_string());
    // Other tests of this service may have such endpoints, too.
    eventually("the metric of disabled endpoints", WAIT_TIMEOUT, async || {
        let metrics = operator.call(Method::GET, "/metrics", "text/plain", "").await;
        let gone = text_of(&metrics)
            .lines()
            .find_map(|line| line.strip_prefix("vouchsafe_webhook_endpoints_gone "));
        gone.is_some_and(|gone| gone != "0").then_some(())
    })
    .await;
    receiver.set_behavior(Behavior::Status(204));
    let id = webhook["webhook_id"].as_str().unwrap();
    let on = operator
        .send_json(
            Method::POST,
            &format!("/admin/v1/webhooks/{id}/enable"),
            &json!({}),
        )
        .await;
    assert!(
        on["failing_since"].is_string(),
        "the endpoint has accepted nothing yet"
    );
    assert_in_sequence(&receiver.wait_for_events(4));
}

#[tokio::test]
async fn replay_sends_one_event_or_range() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(9).await;
    let mut partner = operator.add_partner("1000").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    expect_success(&partner.order(&sale, 2).await, 201);
    let feed = partner.list_all("/events").await;
    let receiver = Receiver::start();
    let webhook = register_webhook(&mut partner, &receiver, &json!({})).await;
    let path = format!("/webhooks/{}/replay", webhook["webhook_id"].as_str().unwrap());
    let event = json!({ "event_id": feed[2]["event_id"] }).to_string();
    let response = partner.send_signed(Method::POST, &path, &event).await;
    assert_eq!(expect_success(&response, 202)["replayed"], 1);
    assert_eq!(receiver.wait_for_events(1)[0].body(), feed[2]);
    let range = json!({ "from": feed[0]["created_at"] }).to_string();
    let response = partner.send_signed(Method::POST, &path, &range).await;
    assert_eq!(expect_success(&response, 202)["replayed"], 7);
    let events = receiver.wait_for_events(8);
    assert_in_sequence(&events[1..]);
    let unknown = json!({ "event_id": format!("evt_{}", "0".repeat(32)) }).to_string();
    expect_error(
        &partner.send_signed(Method::POST, &path, &unknown).await,
        404,
        "EVENT_NOT_FOUND",
    );
    let deliveries = operator
        .get(&format!(
            "/admin/v1/deliveries?webhook_id={}",
            webhook["webhook_id"].as_str().unwrap()
        ))
        .await;
    let delivery = deliveries["data"][0]["delivery_id"].as_str().unwrap().to_owned();
    let shown = operator.get(&format!("/admin/v1/deliveries/{delivery}")).await;
    assert_eq!(shown["event_id"], deliveries["data"][0]["event_id"]);
    let shown = operator
        .get(&format!(
            "/admin/v1/webhooks/{}",
            webhook["webhook_id"].as_str().unwrap()
        ))
        .await;
    assert_eq!(shown["url"], webhook["url"]);
    let replay = operator
        .send_json(
            Method::POST,
            &format!("/admin/v1/deliveries/{delivery}/replay"),
            &json!({}),
        )
        .await;
    assert_eq!(replay["status"], "WAITING");
    let events = receiver.wait_for_events(9);
    assert_eq!(events[8].event_id(), replay["event_id"].as_str().unwrap());
}

/// A replay is completed by an attempt that starts after it was accepted, not by the one in flight.
#[tokio::test]
async fn replay_of_event_in_flight_is_sent_afterwards() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(5).await;
    let mut partner = operator.add_partner("1000").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let feed = partner.list_all("/events").await;
    let receiver = Receiver::start();
    receiver.set_behavior(Behavior::HoldUntilChanged);
    let webhook = register_webhook(&mut partner, &receiver, &json!({})).await;
    let webhook_id = webhook["webhook_id"].as_str().unwrap();
    let path = format!("/webhooks/{webhook_id}/replay");
    let event = json!({ "event_id": feed[0]["event_id"] }).to_string();
    for _ in 0..2 {
        let response = partner.send_signed(Method::POST, &path, &event).await;
        assert_eq!(expect_success(&response, 202)["replayed"], 1);
        receiver.wait_for_events(1);
    }
    receiver.set_behavior(Behavior::Status(204));
    assert_eq!(receiver.wait_for_events(2)[1].body(), feed[0]);
    let path = format!("/admin/v1/deliveries?webhook_id={webhook_id}");
    let delivered = eventually("the event to be delivered", WAIT_TIMEOUT, async || {
        let deliveries = operator.get(&path).await;
        Some(deliveries["data"][0].clone()).filter(|event| event["status"] == "DELIVERED")
    });
    let statuses = delivered.await["attempts"].as_array().unwrap().clone();
    let statuses: Vec<_> = statuses.iter().map(|event| event["status"].clone()).collect();
    assert_eq!(statuses, [204, 204]);
    assert_eq!(receiver.received().len(), 2);
}

#[tokio::test]
async fn kill_keeps_all_events_in_order() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(200).await;
    let mut partner = operator.add_partner("100000").await;
    let receiver = Receiver::start();
    receiver.set_behavior(Behavior::DelayedOk(Duration::from_millis(30)));
    register_webhook(&mut partner, &receiver, &json!({})).await;
    for round in 0..3 {
        for _ in 0..15 {
            // A start on a busy machine may take longer than an order waits: the partner retries.
            let key = unique("key");
            let response = eventually("the order", WAIT_TIMEOUT, async || {
                Some(partner.order_with_key(&key, &sale, 1).await).filter(|response| response.status != 503)
            });
            expect_success(&response.await, 201);
        }
        receiver.wait_for_events(5 + round * 20);
        service.kill();
        service.restart();
        partner = partner.connect_to(&service.base_url());
    }
    let feed = partner.list_all("/events?limit=100").await;
    assert_eq!(feed.len(), 3 * 45);
    eventually("all events to arrive", WAIT_TIMEOUT, async || {
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

/// Orders take precedence on a busy machine: only the webhook threads have a higher nice value than the
/// process.
#[test]
fn webhook_threads_have_lower_priority() {
    let process = format!("/proc/{}/task", shared().pid());
    let mut threads: Vec<(String, i32)> = std::fs::read_dir(process)
        .unwrap()
        .map(|thread| {
            let stat = std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap();
            // `pid (name) state …`; no parenthesis follows the name. Field 19 is the nice value.
            let (before, after) = stat.rsplit_once(") ").unwrap();
            let (_, name) = before.split_once('(').unwrap();
            let nice = after.split(' ').nth(16).unwrap().parse().unwrap();
            (name.to_owned(), nice)
        })
        .collect();
    let (_, process_nice) = *threads.iter().min_by_key(|(_, nice)| *nice).unwrap();
    threads.retain(|(_, nice)| *nice > process_nice);
    threads.sort();
    let names: Vec<&str> = threads.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["actix-rt|system", "webhooks", "webhooks"], "{threads:?}");
}
