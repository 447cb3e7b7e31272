//! Pending orders: vendor fulfilment, CACHE_ONLY and approval rules.

use hyper::Method;
use serde_json::{Value, json};

use vouchsafe_test_harness::{
    Operator, WAIT_TIMEOUT, eventually, expect_error, expect_success, json_of, order_body, shared, text_of,
    unique,
};

#[tokio::test]
async fn vendor_order_is_accepted_pending_and_paid() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_product("vendor", 0).await;
    let mut partner = operator.add_partner("100").await;
    let response = partner.order(&sale, 3).await;
    let order = expect_success(&response, 202);
    let order_id = order["order_id"].as_str().unwrap();
    assert_eq!(
        response.header("location"),
        Some(format!("/api/v1/orders/{order_id}").as_str())
    );
    let product = &sale.product_id;
    let at = order["created_at"].as_str().unwrap();
    let expected = [
        format!(r#"{{"order_id":"{order_id}","status":"PENDING","total_amount":75.00,"currency":"USD","#),
        r#""fulfilled_from":null,"reference":null,"metadata":null,"#.to_owned(),
        format!(r#""items":[{{"product_id":"{product}","denomination":25.00,"quantity":3,"#),
        r#""delivered":0,"pending":3,"failed":0,"cancelled":0}],"vouchers":[],"#.to_owned(),
        r#""refunded_amount":0.00,"closed":false,"pending_reason":"VENDOR","#.to_owned(),
        format!(r#""timeline":[{{"status":"PENDING","at":"{at}","by":"partner","reason":null}}],"#),
        format!(r#""created_at":"{at}","updated_at":"{at}"}}"#),
    ];
    assert_eq!(text_of(&response), expected.concat());
    assert_eq!(
        text_of(&partner.get(&format!("/orders/{order_id}")).await),
        text_of(&response)
    );
    let wallets = partner.get("/wallets").await;
    let expected = r#""currency":"USD","balance":25.00,"pending_orders":75.00,"pending_payouts":0.00,"#;
    assert!(text_of(&wallets).contains(expected), "{wallets:?}");
}

#[tokio::test]
async fn partial_stock_of_pending_order_is_allocated() {
    let mut operator = Operator::of(shared());
    let [partly_stocked, other] = [
        operator.add_product("vendor", 2).await,
        operator.add_stocked_product(1).await,
    ];
    let mut partner = operator.add_partner("1000").await;
    let both =
        json!({ "items": [order_body(&partly_stocked, 3)["items"][0], order_body(&other, 1)["items"][0]] });
    let order = expect_success(&partner.send(&unique("key"), &both).await, 202);
    assert_eq!(
        (&order["status"], &order["pending_reason"], &order["vouchers"]),
        (&json!("PENDING"), &json!("VENDOR"), &json!([]))
    );
    let path = format!("/orders/{}", order["order_id"].as_str().unwrap());
    let order = eventually("the stock to be allocated", WAIT_TIMEOUT, async || {
        let order = partner.read(&path).await;
        (order["status"] == "PARTIALLY_DELIVERED").then_some(order)
    })
    .await;
    let delivered = [0, 1].map(|line: usize| order["items"][line]["delivered"].as_u64());
    assert_eq!(delivered, [Some(2), Some(1)]);
    for sale in [&partly_stocked, &other] {
        let mut cache_only_order = order_body(sale, 1);
        cache_only_order["fulfilment"] = json!("CACHE_ONLY");
        let response = partner.send(&unique("key"), &cache_only_order).await;
        expect_error(&response, 409, "INSUFFICIENT_INVENTORY");
    }
}

#[tokio::test]
async fn cache_only_order_is_delivered_or_rejected() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_product("vendor", 2).await;
    let mut partner = operator.add_partner("1000").await;
    let from_stock = |quantity| {
        let mut body = order_body(&sale, quantity);
        body["fulfilment"] = json!("CACHE_ONLY");
        body
    };
    let response = partner.send(&unique("key"), &from_stock(3)).await;
    let error = expect_error(&response, 409, "INSUFFICIENT_INVENTORY");
    assert!(
        error["message"].as_str().unwrap().contains(&sale.product_id),
        "{error}"
    );
    assert_eq!(partner.balance("USD").await, "1000.00");
    let order = expect_success(&partner.send(&unique("key"), &from_stock(2)).await, 201);
    assert_eq!(order["fulfilled_from"], "cache");
}

#[tokio::test]
async fn product_under_approval_leaves_stock_unreserved() {
    let mut operator = Operator::of(shared());
    let sale = operator
        .add_product_with(json!({ "approval": "always" }), "25", 1)
        .await;
    let mut partner = operator.add_partner("100").await;
    // Approval checks stock without reserving it: both orders wait for the same voucher.
    for _ in 0..2 {
        let order = expect_success(&partner.order(&sale, 1).await, 202);
        assert_eq!(
            (&order["status"], &order["pending_reason"]),
            (&json!("PENDING"), &json!("APPROVAL"))
        );
        assert_eq!(order["vouchers"], json!([]));
    }
    let product = partner.read(&format!("/products/{}", sale.product_id)).await;
    assert_eq!(product["availability"], "LOW_STOCK");
    assert_eq!(partner.balance("USD").await, "50.00");
    expect_error(&partner.order(&sale, 2).await, 409, "INSUFFICIENT_INVENTORY");
}

#[tokio::test]
async fn partner_approval_rule_applies_to_next_order() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(10).await;
    let mut partner = operator.add_partner("1000").await;
    let path = format!("/admin/v1/partners/{}", partner.partner_id);
    let mut outcome = async |quantity| {
        let order = partner.order(&sale, quantity).await;
        (order.status.as_u16(), json_of(&order)["pending_reason"].clone())
    };
    let (delivered, waits) = ((201, Value::Null), (202, json!("APPROVAL")));
    assert_eq!(outcome(1).await, delivered);
    let mut terms = Operator::of(shared());
    let mut set_rule = async |rule: Value| {
        terms
            .send_json(Method::PATCH, &path, &json!({ "approval_rule": rule }))
            .await;
    };
    set_rule(json!({ "amount_over": { "USD": 25 } })).await;
    assert_eq!(
        (outcome(1).await, outcome(2).await),
        (delivered.clone(), waits.clone())
    );
    set_rule(json!({ "amount_over": { "EUR": 25 }, "other_currencies": "approve" })).await;
    assert_eq!(outcome(1).await, waits);
    set_rule(json!({ "first_orders": 5 })).await;
    assert_eq!((outcome(1).await, outcome(1).await), (waits, delivered.clone()));
    set_rule(Value::Null).await;
    assert_eq!(outcome(2).await, delivered);
}

#[tokio::test]
async fn sandbox_products_behave_as_named() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let mut order = async |product: &str| {
        let body = json!({ "items": [{ "product_id": product, "denomination": 25, "quantity": 1 }] });
        partner.send(&unique("key"), &body).await
    };
    assert_eq!(
        expect_success(&order("sbx-instant").await, 201)["status"],
        "DELIVERED"
    );
    assert_eq!(
        expect_success(&order("sbx-pending").await, 202)["pending_reason"],
        "VENDOR"
    );
    assert_eq!(
        expect_success(&order("sbx-approval").await, 202)["pending_reason"],
        "APPROVAL"
    );
    expect_error(&order("sbx-out-of-stock").await, 409, "INSUFFICIENT_INVENTORY");
}
