//! Log of delivery attempts, read by the partner and by operators.

use std::collections::BTreeMap;

use hyper::Method;
use serde_json::{Value, json};

use crate::deliveries::register_webhook;
use vouchsafe_test_harness::{
    Behavior, Instance, Operator, Partner, Receiver, WAIT_TIMEOUT, eventually, expect_error, expect_success,
    shared, text_of,
};

/// The attempts of an endpoint once there are `count` of them.
async fn wait_for_attempts(partner: &mut Partner, path: &str, count: usize) -> Vec<Value> {
    eventually("the attempts to be logged", WAIT_TIMEOUT, async || {
        Some(partner.list_all(path).await).filter(|attempts| attempts.len() >= count)
    })
    .await
}

fn path_of(webhook: &Value) -> String {
    format!("/webhooks/{}/deliveries", webhook["webhook_id"].as_str().unwrap())
}

#[tokio::test]
async fn each_attempt_is_listed_for_its_partner_and_operators_only() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(5).await;
    let mut partner = operator.add_partner("1000").await;
    let receiver = Receiver::start();
    receiver.set_behavior(Behavior::StatusOnce(500));
    let webhook = register_webhook(&mut partner, &receiver, &json!({})).await;
    let path = path_of(&webhook);
    assert!(partner.list_all(&path).await.is_empty());
    expect_success(&partner.order(&sale, 1).await, 201);
    let first = wait_for_attempts(&mut partner, &path, 1).await.pop().unwrap();
    let events = receiver.wait_for_events(4);
    let attempts = wait_for_attempts(&mut partner, &path, 4).await;
    // The delivery's row, and with it its id, may be written after the entry of the log.
    let failure = &attempts[3];
    assert_eq!(
        (attempts.len(), &failure["attempt_id"]),
        (4, &first["attempt_id"]),
        "newest first"
    );
    let event_ids: Vec<_> = attempts
        .iter()
        .rev()
        .map(|attempt| attempt["event_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        event_ids,
        events.iter().map(|event| event.event_id()).collect::<Vec<_>>()
    );
    assert_eq!(
        (
            &failure["outcome"],
            &failure["status"],
            &failure["event"],
            &failure["attempt"]
        ),
        (&json!("failed"), &json!(500), &json!("order.created"), &json!(1))
    );
    assert!(
        failure["next_attempt_at"].as_str() > failure["at"].as_str() && failure["delivery_id"].is_string()
    );
    let retry = &attempts[2];
    assert_eq!(
        (
            &retry["outcome"],
            &retry["attempt"],
            &retry["next_attempt_at"],
            &retry["delivery_id"]
        ),
        (
            &json!("delivered"),
            &json!(2),
            &Value::Null,
            &failure["delivery_id"]
        )
    );

    let order = format!(
        "{path}?outcome=delivered&order_id={}",
        failure["order_id"].as_str().unwrap()
    );
    assert_eq!(partner.list_all(&format!("{order}&limit=2")).await, attempts[..3]);
    let delivery = format!("{path}?delivery_id={}", failure["delivery_id"].as_str().unwrap());
    assert_eq!(partner.list_all(&delivery).await, attempts[2..]);
    let seen = operator.get(&format!("/admin/v1{path}")).await;
    assert_eq!(seen["data"], json!(attempts), "operators see the same");

    let health = format!(
        "/admin/v1/webhooks/{}/health",
        webhook["webhook_id"].as_str().unwrap()
    );
    let health = operator.get(&format!("{health}?from=2026-01-01T00:00:00Z")).await;
    let sum = |name: &str| {
        health["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hour| hour[name].as_i64().unwrap())
            .sum::<i64>()
    };
    assert_eq!(
        (sum("delivered"), sum("failed"), &health["step_s"]),
        (3, 1, &json!(7_200)),
        "{health}"
    );

    let mut other = operator.add_partner("1").await;
    expect_error(&other.get(&path).await, 404, "WEBHOOK_NOT_FOUND");
    expect_error(
        &partner.get("/webhooks/wh_1/deliveries").await,
        404,
        "WEBHOOK_NOT_FOUND",
    );
    let response = operator
        .call_json(
            Method::GET,
            "/admin/v1/webhooks/wh_00000000000000000000000000000000/deliveries",
            "",
        )
        .await;
    expect_error(&response, 404, "WEBHOOK_NOT_FOUND");
    let metrics = operator.call_without_token(Method::GET, "/metrics", &[]).await;
    assert!(
        text_of(&metrics).contains("vouchsafe_webhook_attempts_not_logged_total{reason=\"queue_full\"} 0")
    );
}

#[tokio::test]
async fn shutdown_writes_queued_attempts() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(50).await;
    let mut partner = operator.add_partner("10000").await;
    let receiver = Receiver::start();
    let webhook = register_webhook(&mut partner, &receiver, &json!({})).await;
    for _ in 0..10 {
        expect_success(&partner.order(&sale, 1).await, 201);
    }
    receiver.wait_for_events(30);
    assert_eq!(service.stop(), Some(0));
    let mut sent = BTreeMap::new();
    for event in receiver.received() {
        *sent.entry(event.event_id()).or_insert(0) += 1;
    }
    service.restart();
    let mut partner = partner.connect_to(&service.base_url());
    receiver.wait_for_events(30);
    let mut logged = BTreeMap::new();
    for attempt in partner.list_all(&path_of(&webhook)).await {
        *logged
            .entry(attempt["event_id"].as_str().unwrap().to_owned())
            .or_insert(0) += 1;
    }
    assert_eq!(logged, sent);
}

#[tokio::test]
async fn log_of_zero_days_is_empty() {
    let mut service = Instance::start_with(&[("VOUCHSAFE_DELIVERY_LOG_DAYS", "0")]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(5).await;
    let mut partner = operator.add_partner("1000").await;
    let receiver = Receiver::start();
    let webhook = register_webhook(&mut partner, &receiver, &json!({})).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    receiver.wait_for_events(3);
    assert!(partner.list_all(&path_of(&webhook)).await.is_empty());
    assert_eq!(service.stop(), Some(0));
}
