//! `/sandbox/clock`: the windows of 24 hours of a partner end without waiting for them.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_test_harness::{
    Behavior, Operator, Partner, Receiver, WAIT_TIMEOUT, eventually, expect_error, expect_success, id_of,
    shared, unique,
};

use crate::approvals::assert_verified;
use crate::deliveries::register_webhook;
use crate::multi_node::{start_two_nodes, wait_for_status};

const HOUR: u32 = 3_600;

async fn advance(partner: &mut Partner, seconds: u32) -> Value {
    let body = json!({ "advance_seconds": seconds }).to_string();
    let response = partner.send_signed(Method::POST, "/sandbox/clock", &body).await;
    expect_success(&response, 200)
}

async fn cancel(partner: &mut Partner, order: &Value) -> vouchsafe_api_client::ApiResponse {
    let path = format!("/orders/{}/cancel", id_of(order));
    partner.send_signed(Method::POST, &path, "").await
}

#[tokio::test]
async fn key_ends_after_24_hours_of_its_partner() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(9).await;
    let mut partner = operator.add_partner("1000").await;
    let mut other = operator.add_partner("1000").await;
    let key = unique("key");
    let first = expect_success(&partner.order_with_key(&key, &sale, 1).await, 201);
    let of_other = expect_success(&other.order_with_key(&key, &sale, 1).await, 201);
    advance(&mut partner, 20 * HOUR).await;
    let replayed = partner.order_with_key(&key, &sale, 1).await;
    assert_eq!(expect_success(&replayed, 201), first);
    let clock = advance(&mut partner, 5 * HOUR).await;
    assert_eq!(clock["advanced_seconds"], 25 * HOUR);
    let second = expect_success(&partner.order_with_key(&key, &sale, 2).await, 201);
    assert_ne!(id_of(&second), id_of(&first));
    // The key is as old as its second order.
    advance(&mut partner, 20 * HOUR).await;
    let replayed = partner.order_with_key(&key, &sale, 2).await;
    assert_eq!(expect_success(&replayed, 201), second);
    let of_other_again = other.order_with_key(&key, &sale, 1).await;
    assert_eq!(expect_success(&of_other_again, 201), of_other);
    assert_verified().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn advance_at_one_node_ends_keys_at_the_other() {
    let [first, second] = start_two_nodes();
    let mut operator = Operator::of(&first);
    let sale = operator.add_stocked_product(9).await;
    let mut partner = operator.add_partner("1000").await;
    let mut at_second = partner.connect_to(&second.base_url());
    wait_for_status(&mut at_second, 200, &format!("/products/{}", sale.product_id)).await;
    let key = unique("key");
    let before = expect_success(&at_second.order_with_key(&key, &sale, 1).await, 201);
    advance(&mut partner, 25 * HOUR).await;
    let poll = async || {
        let order = expect_success(&at_second.order_with_key(&key, &sale, 1).await, 201);
        (id_of(&order) != id_of(&before)).then_some(())
    };
    eventually("the other node to know the clock", WAIT_TIMEOUT, poll).await;
}

#[tokio::test]
async fn order_is_cancellable_for_the_window_of_its_partner() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(9).await;
    let mut partner = operator.add_partner("1000").await;
    let mut other = operator.add_partner("1000").await;
    let old = expect_success(&partner.order(&sale, 1).await, 201);
    let of_other = expect_success(&other.order(&sale, 1).await, 201);
    advance(&mut partner, 25 * HOUR).await;
    let new = expect_success(&partner.order(&sale, 1).await, 201);
    expect_error(&cancel(&mut partner, &old).await, 409, "ORDER_NOT_CANCELLABLE");
    expect_success(&cancel(&mut partner, &new).await, 200);
    expect_success(&cancel(&mut other, &of_other).await, 200);
}

#[tokio::test]
async fn waiting_deliveries_fail_after_24_hours_of_their_partner() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(9).await;
    let mut partner = operator.add_partner("1000").await;
    let receiver = Receiver::start();
    receiver.set_behavior(Behavior::Status(500));
    register_webhook(&mut partner, &receiver, &json!({})).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let path = format!("/admin/v1/deliveries?partner_id={}", partner.partner_id);
    let states = async |operator: &mut Operator| -> Vec<String> {
        let deliveries = operator.get(&path).await;
        let deliveries = deliveries["data"].as_array().unwrap().iter();
        deliveries
            .map(|delivery| delivery["status"].as_str().unwrap().to_owned())
            .collect()
    };
    let mut observer = Operator::of(shared());
    eventually("the deliveries to wait", WAIT_TIMEOUT, async || {
        (states(&mut observer).await == ["WAITING"; 3]).then_some(())
    })
    .await;
    advance(&mut partner, 25 * HOUR).await;
    eventually("the deliveries to fail", WAIT_TIMEOUT, async || {
        (states(&mut observer).await == ["FAILED"; 3]).then_some(())
    })
    .await;
    // A later event has 24 hours of its own.
    receiver.set_behavior(Behavior::Status(204));
    let before = receiver.received().len();
    expect_success(&partner.order(&sale, 1).await, 201);
    receiver.wait_for_events(before + 3);
}

#[tokio::test]
async fn invalid_advance_is_rejected() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("0").await;
    for body in [r#"{"advance_seconds":0}"#, r#"{"advance_seconds":2678401}"#, "{}"] {
        let response = partner.send_signed(Method::POST, "/sandbox/clock", body).await;
        let error = expect_error(&response, 422, "VALIDATION_FAILED");
        assert_eq!(error["details"][0]["field"], "advance_seconds", "{body}");
    }
}
