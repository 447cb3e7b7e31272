//! Concurrent orders for the last vouchers, the last money and the same idempotency key.

use std::collections::HashSet;

use futures_util::future::join_all;
use serde_json::json;
use vouchsafe_api_client::ApiResponse;

use vouchsafe_test_harness::{Operator, Partner, expect_error, expect_success, order_line, shared, unique};

/// Sends the orders concurrently, each on its own connection.
async fn order_concurrently(partner: &Partner, bodies: Vec<serde_json::Value>) -> Vec<ApiResponse> {
    let orders = bodies.into_iter().map(|body| {
        let mut partner = partner.reconnect();
        async move { partner.send(&unique("key"), &body).await }
    });
    join_all(orders).await
}

/// Counts the placed orders and asserts the error of all others.
fn count_placed(responses: &[ApiResponse], status: u16, code: &str) -> usize {
    let (placed, rejected): (Vec<_>, Vec<_>) = responses.iter().partition(|response| response.status == 201);
    for response in rejected {
        expect_error(response, status, code);
    }
    placed.len()
}

#[tokio::test]
async fn concurrent_orders_sell_last_vouchers_once() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(7).await;
    let (first, second) = (
        operator.add_partner("1000").await,
        operator.add_partner("1000").await,
    );
    let bodies = || {
        (0..16)
            .map(|_| json!({ "items": [order_line(&sale, 1)] }))
            .collect::<Vec<_>>()
    };
    let (mut responses, others) = tokio::join!(
        order_concurrently(&first, bodies()),
        order_concurrently(&second, bodies())
    );
    responses.extend(others);
    assert_eq!(count_placed(&responses, 409, "INSUFFICIENT_INVENTORY"), 7);
    let voucher_ids = responses
        .iter()
        .filter(|response| response.status == 201)
        .map(|response| {
            expect_success(response, 201)["vouchers"][0]["voucher_id"]
                .as_str()
                .unwrap()
                .to_owned()
        });
    assert_eq!(voucher_ids.collect::<HashSet<_>>().len(), 7);
}

#[tokio::test]
async fn concurrent_orders_spend_last_money_once() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(40).await;
    let mut partner = operator.add_partner("130").await;
    let bodies = (0..24)
        .map(|_| json!({ "items": [order_line(&sale, 1)] }))
        .collect();
    let responses = order_concurrently(&partner, bodies).await;
    assert_eq!(count_placed(&responses, 402, "INSUFFICIENT_FUNDS"), 5);
    assert_eq!(partner.balance("USD").await, "5.00");
    let ledger = partner.read("/transactions?limit=100").await;
    let entries = ledger["data"].as_array().unwrap();
    let sequences: Vec<_> = entries
        .iter()
        .map(|entry| entry["sequence"].as_i64().unwrap())
        .collect();
    assert_eq!(sequences, [6, 5, 4, 3, 2, 1]);
    // Orders rejected for lack of money must have released their vouchers.
    operator.top_up(&partner.partner_id, "USD", "1000").await;
    expect_success(&partner.order(&sale, 35).await, 201);
}

#[tokio::test]
async fn concurrent_orders_for_same_products_do_not_deadlock() {
    let mut operator = Operator::of(shared());
    let [a, b] = [
        operator.add_stocked_product(20).await,
        operator.add_stocked_product(20).await,
    ];
    let partner = operator.add_partner("2000").await;
    let bodies = (0..20).map(|n| {
        let (first, second) = if n % 2 == 0 { (&a, &b) } else { (&b, &a) };
        json!({ "items": [order_line(first, 1), order_line(second, 1)] })
    });
    let responses = order_concurrently(&partner, bodies.collect()).await;
    assert_eq!(count_placed(&responses, 409, "INSUFFICIENT_INVENTORY"), 20);
}

#[tokio::test]
async fn order_short_of_one_product_takes_none_of_other() {
    let mut operator = Operator::of(shared());
    let [plenty, scarce] = [
        operator.add_stocked_product(12).await,
        operator.add_stocked_product(4).await,
    ];
    let partner = operator.add_partner("10000").await;
    let bodies = (0..12).map(|_| json!({ "items": [order_line(&plenty, 1), order_line(&scarce, 1)] }));
    let responses = order_concurrently(&partner, bodies.collect()).await;
    assert_eq!(count_placed(&responses, 409, "INSUFFICIENT_INVENTORY"), 4);
    expect_success(&partner.reconnect().order(&plenty, 8).await, 201);
}

#[tokio::test]
async fn concurrent_requests_with_same_key_execute_once() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(20).await;
    let mut partner = operator.add_partner("1000").await;
    let key = unique("key");
    let requests = (0..20).map(|_| {
        let mut partner = partner.reconnect();
        let (key, sale) = (&key, &sale);
        async move { partner.order_with_key(key, sale, 1).await }
    });
    let responses = join_all(requests).await;
    let (placed, busy): (Vec<_>, Vec<_>) = responses.iter().partition(|response| response.status == 201);
    for response in busy {
        expect_error(response, 409, "IDEMPOTENCY_IN_PROGRESS");
        assert_eq!(response.header("retry-after"), Some("1"));
    }
    let fresh: Vec<_> = placed
        .iter()
        .filter(|response| response.header("idempotent-replayed").is_none())
        .collect();
    assert_eq!(fresh.len(), 1);
    assert!(placed.iter().all(|response| response.body == fresh[0].body));
    assert_eq!(partner.balance("USD").await, "975.00");
    assert_eq!(partner.order_with_key(&key, &sale, 1).await.body, fresh[0].body);
}

#[tokio::test]
async fn concurrent_requests_with_same_key_and_other_bodies_execute_once() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(20).await;
    let mut partner = operator.add_partner("1000").await;
    let key = unique("key");
    let requests = (0..20).map(|n| {
        let mut partner = partner.reconnect();
        let (key, body) = (
            &key,
            json!({ "items": [order_line(&sale, 1)], "reference": n.to_string() }),
        );
        async move { partner.send(key, &body).await }
    });
    let responses = join_all(requests).await;
    let (placed, rejected): (Vec<_>, Vec<_>) = responses.iter().partition(|response| response.status == 201);
    assert_eq!(placed.len(), 1);
    for response in rejected {
        if response.status == 409 {
            expect_error(response, 409, "IDEMPOTENCY_IN_PROGRESS");
        } else {
            expect_error(response, 422, "IDEMPOTENCY_KEY_REUSED");
        }
    }
    assert_eq!(partner.balance("USD").await, "975.00");
}
