//! `POST /webhooks/{webhook_id}/retry`: everything that waits behind a failing endpoint is attempted.

use std::collections::BTreeSet;

use hyper::Method;
use serde_json::json;

use vouchsafe_test_harness::{
    Behavior, Operator, Receiver, WAIT_TIMEOUT, eventually, expect_error, expect_success, shared,
};

use crate::commands::run_ok;
use crate::deliveries::register_webhook;

/// One more than the failures after which an endpoint is failing: the last order waits without an attempt.
const ORDERS: usize = 6;

#[tokio::test]
async fn requested_retry_attempts_every_order_of_a_failing_endpoint() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(ORDERS).await;
    let mut partner = operator.add_partner("1000").await;
    let receiver = Receiver::start();
    receiver.set_behavior(Behavior::Status(500));
    let webhook = register_webhook(&mut partner, &receiver, &json!({})).await;
    for _ in 0..ORDERS {
        expect_success(&partner.order(&sale, 1).await, 201);
    }
    eventually("the endpoint to be failing", WAIT_TIMEOUT, async || {
        (partner.read("/webhooks").await["data"][0]["status"] == "failing").then_some(())
    })
    .await;
    let id = webhook["webhook_id"].as_str().unwrap();
    let table = run_ok(&["webhook", "deliveries", "--webhook", id, "--status", "WAITING"]);
    let mut rows = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert!(
        rows.any(|row| row[1..].starts_with(&["WAITING", "500"])),
        "{table}"
    );
    let path = format!("/webhooks/{id}/retry");
    let retried = expect_success(&partner.send_signed(Method::POST, &path, "").await, 202);
    assert_eq!(retried["webhook_id"], webhook["webhook_id"]);
    let orders = || -> usize {
        let received = receiver.received();
        received
            .iter()
            .map(|event| event.order_id())
            .collect::<BTreeSet<_>>()
            .len()
    };
    eventually("an attempt for each order", WAIT_TIMEOUT, async || {
        (orders() == ORDERS).then_some(())
    })
    .await;
    receiver.set_behavior(Behavior::Status(204));
    let by_operator = operator
        .send_json(Method::POST, &format!("/admin/v1{path}"), &json!({}))
        .await;
    assert_eq!(by_operator["webhook_id"], webhook["webhook_id"]);
    eventually("every event to be delivered", WAIT_TIMEOUT, async || {
        let deliveries = operator
            .get(&format!("/admin/v1/deliveries?webhook_id={id}&status=WAITING"))
            .await;
        deliveries["data"].as_array().unwrap().is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn retry_of_another_partners_endpoint_is_not_found() {
    let mut operator = Operator::of(shared());
    let mut owner = operator.add_partner("10").await;
    let webhook = register_webhook(&mut owner, &Receiver::start(), &json!({})).await;
    let path = format!("/webhooks/{}/retry", webhook["webhook_id"].as_str().unwrap());
    let mut other = operator.add_partner("10").await;
    let response = other.send_signed(Method::POST, &path, "").await;
    expect_error(&response, 404, "WEBHOOK_NOT_FOUND");
}
