//! `/sandbox/faults`: faults that a partner requests for its next orders.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::RequestFailure;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_test_harness::{
    Operator, Partner, WAIT_TIMEOUT, eventually, expect_error, expect_success, id_of, shared, statuses,
    unique,
};

const ORDER: &str = r#"{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1}]}"#;

async fn request_fault(partner: &mut Partner, fault: &Value) -> Value {
    let response = partner
        .send_signed(Method::POST, "/sandbox/faults", &fault.to_string())
        .await;
    expect_success(&response, 201)
}

/// Returns kind and remaining occurrences of the active faults.
async fn active_faults(partner: &mut Partner) -> Vec<(String, u64)> {
    let faults = partner.list_all("/sandbox/faults").await.into_iter();
    faults
        .map(|fault| {
            let kind = fault["fault"].as_str().unwrap().to_owned();
            (kind, fault["remaining"].as_u64().unwrap())
        })
        .collect()
}

/// Places an order with the vendor and waits until it is closed.
async fn order_from_vendor(partner: &mut Partner) -> Value {
    let body = json!({ "items": [{ "product_id": "sbx-pending", "denomination": 25, "quantity": 2 }] });
    let placed = partner.send(&unique("key"), &body).await;
    let path = format!("/orders/{}", id_of(&expect_success(&placed, 202)));
    eventually("the order to be closed", WAIT_TIMEOUT, async || {
        let order = partner.read(&path).await;
        (order["closed"] == true).then_some(order)
    })
    .await
}

#[tokio::test]
async fn unavailable_orders_are_not_executed_and_retries_succeed() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("50").await;
    let mut other = operator.add_partner("50").await;
    let fault = request_fault(
        &mut partner,
        &json!({ "fault": "SERVICE_UNAVAILABLE", "count": 2 }),
    )
    .await;
    assert_eq!(
        (&fault["remaining"], &fault["delay_seconds"]),
        (&json!(2), &Value::Null)
    );
    expect_success(&other.send_text(&unique("key"), ORDER).await, 201);
    let key = unique("key");
    for remaining in [1, 0] {
        let response = partner.send_text(&key, ORDER).await;
        expect_error(&response, 503, "SERVICE_UNAVAILABLE");
        assert_eq!(response.header("retry-after"), Some("1"));
        let expected = Vec::from_iter((remaining > 0).then(|| ("SERVICE_UNAVAILABLE".to_owned(), remaining)));
        assert_eq!(active_faults(&mut partner).await, expected);
    }
    assert_eq!(partner.balance("USD").await, "50.00");
    let placed = partner.send_text(&key, ORDER).await;
    expect_success(&placed, 201);
    assert_eq!(placed.header("idempotent-replayed"), None);
}

#[tokio::test]
async fn lost_response_of_any_product_is_replayed() {
    let service = shared();
    let mut partner = Operator::of(service).add_partner("50").await;
    request_fault(&mut partner, &json!({ "fault": "LOST_RESPONSE" })).await;
    let credentials = partner.client.credentials().clone();
    let mut client = PartnerClient::new(&service.base_url(), credentials).unwrap();
    let key = unique("key");
    let outcome = client.order(&key, ORDER).await;
    assert!(matches!(outcome, Err(RequestFailure::Unknown(_))), "{outcome:?}");
    let repeated = partner.send_text(&key, ORDER).await;
    expect_success(&repeated, 201);
    assert_eq!(repeated.header("idempotent-replayed"), Some("true"));
    assert_eq!(partner.balance("USD").await, "25.00");
}

#[tokio::test]
async fn slow_response_comes_after_the_order_is_visible() {
    let mut partner = Operator::of(shared()).add_partner("50").await;
    let fault = request_fault(
        &mut partner,
        &json!({ "fault": "SLOW_RESPONSE", "delay_seconds": 5 }),
    )
    .await;
    assert_eq!(fault["delay_seconds"], 5);
    let mut reader = partner.reconnect();
    let key = unique("key");
    let mut ordering = std::pin::pin!(partner.send_text(&key, ORDER));
    let visible = eventually("the order to be visible", WAIT_TIMEOUT, async || {
        reader.read("/orders").await["data"].get(0).cloned()
    });
    let visible = tokio::select! {
        biased;
        order = visible => order,
        response = &mut ordering => panic!("the response came first: {response:?}"),
    };
    assert_eq!(expect_success(&ordering.await, 201), visible);
}

#[tokio::test]
async fn vendor_without_stock_refunds_the_orders_of_its_partner_only() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("50").await;
    let mut other = operator.add_partner("50").await;
    request_fault(&mut partner, &json!({ "fault": "VENDOR_OUT_OF_STOCK" })).await;
    let order = order_from_vendor(&mut partner).await;
    assert_eq!(
        statuses(&order),
        ["PENDING", "PROCESSING", "CANCELLED", "REFUNDED"]
    );
    assert_eq!(partner.usd_balances().await, (50.0, 0.0));
    for partner in [&mut partner, &mut other] {
        assert_eq!(order_from_vendor(partner).await["status"], "DELIVERED");
    }
}

#[tokio::test]
async fn vendor_timeouts_delay_an_order_that_is_paid_once() {
    let mut partner = Operator::of(shared()).add_partner("50").await;
    request_fault(&mut partner, &json!({ "fault": "VENDOR_TIMEOUT", "count": 2 })).await;
    assert_eq!(order_from_vendor(&mut partner).await["status"], "DELIVERED");
    assert_eq!(active_faults(&mut partner).await, []);
    assert_eq!(partner.usd_balances().await, (0.0, 0.0));
}

#[tokio::test]
async fn faults_are_listed_replaced_and_cleared() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("0").await;
    for (fault, count) in [("VENDOR_TIMEOUT", 3), ("LOST_RESPONSE", 1), ("VENDOR_TIMEOUT", 2)] {
        request_fault(&mut partner, &json!({ "fault": fault, "count": count })).await;
    }
    let expected = [("LOST_RESPONSE".to_owned(), 1), ("VENDOR_TIMEOUT".to_owned(), 2)];
    assert_eq!(active_faults(&mut partner).await, expected);
    assert_eq!(active_faults(&mut operator.add_partner("0").await).await, []);
    let invalid = partner
        .send_signed(Method::POST, "/sandbox/faults", r#"{"fault":"FIRE"}"#)
        .await;
    expect_error(&invalid, 422, "VALIDATION_FAILED");
    let cleared = partner.send_signed(Method::DELETE, "/sandbox/faults", "").await;
    assert_eq!(cleared.status, 204);
    assert_eq!(active_faults(&mut partner).await, []);
}
