//! Fulfilment by vendors, with the sandbox's magic products.

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use vouchsafe_test_harness::{
    Instance, Operator, Partner, WAIT_TIMEOUT, eventually, expect_error, expect_success, id_of, line_counts,
    order_body, shared, statuses, unique,
};

async fn place_pending_order(partner: &mut Partner, product: &str, quantity: u32) -> String {
    let body = json!({ "items": [{ "product_id": product, "denomination": 25, "quantity": quantity }] });
    let response = partner.send(&unique("key"), &body).await;
    id_of(&expect_success(&response, 202))
}

/// Waits until the order is closed and returns it.
async fn wait_until_closed(partner: &mut Partner, order_id: &str) -> Value {
    let path = format!("/orders/{order_id}");
    eventually("the order to be closed", WAIT_TIMEOUT, async || {
        let order = partner.read(&path).await;
        (order["closed"] == true).then_some(order)
    })
    .await
}

/// Waits until the vendor was called for the order.
async fn wait_for_vendor_call(operator: &mut Operator, order_id: &str) {
    let purchases = format!("/admin/v1/purchases?order_id={order_id}");
    eventually("the vendor to be called", WAIT_TIMEOUT, async || {
        let purchase = operator.get(&purchases).await["data"][0].clone();
        purchase["last_response"].is_string().then_some(())
    })
    .await;
}

#[tokio::test]
async fn vendor_filled_order_is_delivered_with_codes() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let order_id = place_pending_order(&mut partner, "sbx-pending", 3).await;
    let order = wait_until_closed(&mut partner, &order_id).await;
    assert_eq!(statuses(&order), ["PENDING", "PROCESSING", "DELIVERED"]);
    assert_eq!(
        (&order["fulfilled_from"], line_counts(&order)),
        (&json!("vendor"), [3, 0, 0])
    );
    assert_eq!(partner.usd_balances().await, (25.0, 0.0));
    assert_eq!(partner.count_codes(&order_id).await, 3);
}

/// Returns the seconds between acceptance and delivery.
fn seconds_until_delivered(order: &Value) -> f64 {
    let at = |entry: &Value| {
        let text = entry["at"].as_str().unwrap();
        OffsetDateTime::parse(text, &Rfc3339).unwrap()
    };
    let timeline = order["timeline"].as_array().unwrap();
    (at(timeline.last().unwrap()) - at(&timeline[0])).as_seconds_f64()
}

#[tokio::test]
async fn vendor_fill_time_determines_delivery_time() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let [slow, quick] = [
        place_pending_order(&mut partner, "sbx-slow", 1).await,
        place_pending_order(&mut partner, "sbx-pending", 1).await,
    ];
    let quick = seconds_until_delivered(&wait_until_closed(&mut partner, &quick).await);
    let slow = seconds_until_delivered(&wait_until_closed(&mut partner, &slow).await);
    // Later by the poll interval and other tests' load, but never earlier.
    assert!(quick >= 1.0, "{quick}");
    assert!(slow >= 60.0, "{slow}");
}

#[tokio::test]
async fn partially_filled_order_is_closed_and_refunded() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let order_id = place_pending_order(&mut partner, "sbx-partial", 4).await;
    let order = wait_until_closed(&mut partner, &order_id).await;
    assert_eq!(
        statuses(&order),
        [
            "PENDING",
            "PROCESSING",
            "PARTIALLY_DELIVERED",
            "PARTIALLY_DELIVERED"
        ]
    );
    assert_eq!(
        (line_counts(&order), &order["refunded_amount"]),
        ([2, 0, 2], &json!(50.0))
    );
    assert_eq!(partner.usd_balances().await, (50.0, 0.0));
    assert_eq!(partner.count_codes(&order_id).await, 2);
}

#[tokio::test]
async fn unfillable_order_is_cancelled_and_refunded() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("50").await;
    let order_id = place_pending_order(&mut partner, "sbx-vendor-fails", 2).await;
    let order = wait_until_closed(&mut partner, &order_id).await;
    assert_eq!(
        statuses(&order),
        ["PENDING", "PROCESSING", "CANCELLED", "REFUNDED"]
    );
    assert_eq!(
        (&order["status"], line_counts(&order)),
        (&json!("REFUNDED"), [0, 0, 2])
    );
    assert_eq!(partner.usd_balances().await, (50.0, 0.0));
    expect_error(&partner.get_codes(&order_id).await, 409, "ORDER_CLOSED");
}

#[tokio::test]
async fn vendor_timeout_after_sale_is_polled_and_paid_once() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("50").await;
    let order_id = place_pending_order(&mut partner, "sbx-vendor-timeout", 2).await;
    let order = wait_until_closed(&mut partner, &order_id).await;
    assert_eq!(
        (&order["status"], line_counts(&order)),
        (&json!("DELIVERED"), [2, 0, 0])
    );
    assert_eq!(partner.usd_balances().await, (0.0, 0.0));
}

#[tokio::test]
async fn stock_is_allocated_before_vendor_purchase() {
    let mut operator = Operator::of(shared());
    let sale = operator
        .add_product_with(json!({ "route": "vendor", "vendor": "mock" }), "25", 2)
        .await;
    let mut partner = operator.add_partner("125").await;
    let order_id = id_of(&expect_success(&partner.order(&sale, 5).await, 202));
    let order = wait_until_closed(&mut partner, &order_id).await;
    assert_eq!(
        (&order["status"], &order["fulfilled_from"]),
        (&json!("DELIVERED"), &json!("mixed"))
    );
    assert_eq!(
        statuses(&order),
        ["PENDING", "PROCESSING", "PARTIALLY_DELIVERED", "DELIVERED"]
    );
    assert_eq!(partner.count_codes(&order_id).await, 5);
}

#[tokio::test]
async fn vouchers_bought_for_cancelled_order_go_to_stock() {
    let mut operator = Operator::of(shared());
    let product = json!({ "route": "vendor", "vendor": "mock", "returnable": true });
    let sale = operator.add_product_with(product, "25", 0).await;
    let mut partner = operator.add_partner("100").await;
    let placed = expect_success(&partner.order(&sale, 2).await, 202);
    let order_id = id_of(&placed);
    wait_for_vendor_call(&mut operator, &order_id).await;
    let cancelled = partner
        .send_signed(hyper::Method::POST, &format!("/orders/{order_id}/cancel"), "")
        .await;
    expect_success(&cancelled, 200);
    assert_eq!(partner.balance("USD").await, "100.00");
    let mut cache_only_order = order_body(&sale, 2);
    cache_only_order["fulfilment"] = json!("CACHE_ONLY");
    eventually("the bought vouchers to be in stock", WAIT_TIMEOUT, async || {
        (partner.send(&unique("key"), &cache_only_order).await.status == 201).then_some(())
    })
    .await;
    assert_eq!(partner.balance("USD").await, "50.00");
}

#[tokio::test]
async fn kill_during_purchase_loses_nothing() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let mut partner = operator.add_partner("1000").await;
    let mut orders = Vec::new();
    for quantity in 1..=4 {
        for product in ["sbx-pending", "sbx-vendor-timeout"] {
            let order_id = place_pending_order(&mut partner, product, quantity).await;
            wait_for_vendor_call(&mut operator, &order_id).await;
            orders.push((order_id, quantity));
        }
    }
    service.kill();
    service.restart();
    let mut partner = partner.connect_to(&service.base_url());
    for (order_id, quantity) in orders {
        let order = wait_until_closed(&mut partner, &order_id).await;
        assert_eq!(order["status"], "DELIVERED");
        assert_eq!(order["vouchers"].as_array().unwrap().len(), quantity as usize);
    }
    assert_eq!(partner.usd_balances().await, (500.0, 0.0));
    service.assert_verified();
}
