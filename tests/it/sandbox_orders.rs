//! `/sandbox/orders/{order_id}`: a partner drives its orders through every event without an operator.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;
use vouchsafe_test_harness::{
    Operator, Partner, WAIT_TIMEOUT, eventually, expect_error, expect_success, id_of, line_counts, shared,
    stages, unique,
};

use crate::approvals::decisions_in_audit_log;

const DECISION: Option<&str> = Some("decided by the partner in the sandbox");

async fn place(partner: &mut Partner, product: &str, quantity: u32) -> String {
    let body = json!({ "items": [{ "product_id": product, "denomination": 25, "quantity": quantity }] });
    id_of(&expect_success(&partner.send(&unique("key"), &body).await, 202))
}

async fn post(partner: &mut Partner, order_id: &str, verb: &str, body: &str) -> ApiResponse {
    let path = format!("/sandbox/orders/{order_id}/{verb}");
    partner.send_signed(Method::POST, &path, body).await
}

async fn drive(partner: &mut Partner, order_id: &str, verb: &str) -> Value {
    expect_success(&post(partner, order_id, verb, "").await, 200)
}

/// Returns the types of an order's events, oldest first.
async fn event_types(partner: &mut Partner, order_id: &str) -> Vec<String> {
    let events = partner.list_all("/events").await.into_iter();
    events
        .filter(|event| event["data"]["order_id"] == order_id)
        .map(|event| event["event"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn partner_alone_reaches_every_event() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    let approved = place(&mut partner, "sbx-approval", 1).await;
    let order = drive(&mut partner, &approved, "approve").await;
    assert_eq!(stages(&order)[1], ("PROCESSING", "operator", DECISION));
    let expected = [
        "order.created",
        "order.processing",
        "voucher.issued",
        "order.delivered",
    ];
    assert_eq!(event_types(&mut partner, &approved).await, expected);

    let rejected = place(&mut partner, "sbx-approval", 1).await;
    let order = drive(&mut partner, &rejected, "reject").await;
    assert_eq!(stages(&order)[1], ("CANCELLED", "operator", DECISION));
    let expected = ["order.created", "order.cancelled", "order.refunded"];
    assert_eq!(event_types(&mut partner, &rejected).await, expected);

    let partial = place(&mut partner, "sbx-slow", 2).await;
    let order = drive(&mut partner, &partial, "advance").await;
    assert_eq!(
        (&order["status"], &order["closed"], line_counts(&order)),
        (&json!("PARTIALLY_DELIVERED"), &json!(false), [1, 1, 0])
    );
    let order = drive(&mut partner, &partial, "fail").await;
    assert_eq!(
        (&order["status"], &order["closed"], &order["refunded_amount"]),
        (&json!("PARTIALLY_DELIVERED"), &json!(true), &json!(25.0))
    );
    let expected = [
        "order.created",
        "order.processing",
        "voucher.issued",
        "order.partially_delivered",
        "order.partially_delivered",
        "order.refunded",
    ];
    assert_eq!(event_types(&mut partner, &partial).await, expected);
    assert_eq!(partner.read(&format!("/orders/{partial}")).await, order);
    assert_eq!(partner.count_codes(&partial).await, 1);
    assert_eq!(partner.usd_balances().await, (50.0, 0.0));
}

#[tokio::test]
async fn decisions_name_the_partner_in_the_audit_log() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("50").await;
    for (verb, action) in [("approve", "order.approve"), ("reject", "order.reject")] {
        let order_id = place(&mut partner, "sbx-approval", 1).await;
        drive(&mut partner, &order_id, verb).await;
        let audited = decisions_in_audit_log(&mut operator, &order_id).await;
        let [entry] = &audited[..] else {
            panic!("{audited:?}")
        };
        assert_eq!(
            (&entry["operator"], &entry["action"]),
            (&json!(partner.partner_id), &json!(action))
        );
        let again = post(&mut partner, &order_id, verb, "").await;
        expect_error(&again, 409, "ORDER_NOT_AWAITING_APPROVAL");
    }
}

#[tokio::test]
async fn advanced_order_receives_the_requested_vouchers() {
    let mut partner = Operator::of(shared()).add_partner("250").await;
    let items =
        [3, 2].map(|quantity| json!({ "product_id": "sbx-slow", "denomination": 25, "quantity": quantity }));
    let placed = partner.send(&unique("key"), &json!({ "items": items })).await;
    let order_id = id_of(&expect_success(&placed, 202));
    let delivered = |order: &Value| [0, 1].map(|item| order["items"][item]["delivered"].as_u64().unwrap());
    let order = drive(&mut partner, &order_id, "advance").await;
    assert_eq!(delivered(&order), [1, 0]);
    let order = expect_success(
        &post(&mut partner, &order_id, "advance", r#"{"quantity":3}"#).await,
        200,
    );
    assert_eq!(
        (delivered(&order), &order["status"]),
        ([3, 1], &json!("PARTIALLY_DELIVERED"))
    );
    let order = expect_success(
        &post(&mut partner, &order_id, "advance", r#"{"quantity":1000}"#).await,
        200,
    );
    assert_eq!(
        (delivered(&order), &order["status"]),
        ([3, 2], &json!("DELIVERED"))
    );
    assert_eq!(order["fulfilled_from"], "vendor");
    assert_eq!(partner.count_codes(&order_id).await, 5);
    assert_eq!(partner.usd_balances().await, (125.0, 0.0));
}

#[tokio::test]
async fn vendor_delivers_the_rest_of_an_advanced_order() {
    let mut partner = Operator::of(shared()).add_partner("100").await;
    let order_id = place(&mut partner, "sbx-slow", 3).await;
    let first = drive(&mut partner, &order_id, "advance").await["vouchers"][0].clone();
    let path = format!("/orders/{order_id}");
    let order = eventually("the vendor to deliver the rest", WAIT_TIMEOUT, async || {
        let order = partner.read(&path).await;
        (order["closed"] == true).then_some(order)
    })
    .await;
    assert_eq!(
        (&order["status"], line_counts(&order)),
        (&json!("DELIVERED"), [3, 0, 0])
    );
    assert!(order["vouchers"].as_array().unwrap().contains(&first), "{order}");
    assert_eq!(partner.count_codes(&order_id).await, 3);
    assert_eq!(partner.usd_balances().await, (25.0, 0.0));
}

#[tokio::test]
async fn failed_order_without_vouchers_is_cancelled_and_refunded() {
    let mut partner = Operator::of(shared()).add_partner("50").await;
    let order_id = place(&mut partner, "sbx-slow", 2).await;
    let order = drive(&mut partner, &order_id, "fail").await;
    let statuses: Vec<_> = stages(&order)
        .into_iter()
        .map(|(status, by, _)| (status, by))
        .collect();
    assert_eq!(
        statuses,
        [
            ("PENDING", "partner"),
            ("PROCESSING", "system"),
            ("CANCELLED", "system"),
            ("REFUNDED", "system")
        ]
    );
    assert_eq!(partner.usd_balances().await, (50.0, 0.0));
    expect_error(
        &post(&mut partner, &order_id, "fail", "").await,
        409,
        "ORDER_NOT_FULFILLABLE",
    );
}

#[tokio::test]
async fn order_in_another_state_is_not_driven() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("200").await;
    let sale = operator.add_stocked_product(1).await;
    let delivered = id_of(&expect_success(&partner.order(&sale, 1).await, 201));
    let awaiting_approval = place(&mut partner, "sbx-approval", 1).await;
    let slow = place(&mut partner, "sbx-slow", 1).await;
    let by_hand = operator.add_product("vendor", 0).await;
    let by_hand = id_of(&expect_success(&partner.order(&by_hand, 1).await, 202));
    for (order_id, verbs, code) in [
        (
            &delivered,
            &["approve", "reject"][..],
            "ORDER_NOT_AWAITING_APPROVAL",
        ),
        (&slow, &["approve", "reject"], "ORDER_NOT_AWAITING_APPROVAL"),
        (&delivered, &["advance", "fail"], "ORDER_NOT_FULFILLABLE"),
        (&awaiting_approval, &["advance", "fail"], "ORDER_NOT_FULFILLABLE"),
        // Its operator delivers.
        (&by_hand, &["advance", "fail"], "ORDER_NOT_FULFILLABLE"),
    ] {
        for verb in verbs {
            expect_error(&post(&mut partner, order_id, verb, "").await, 409, code);
        }
    }
    let response = post(&mut partner, &slow, "advance", r#"{"quantity":0}"#).await;
    expect_error(&response, 422, "VALIDATION_FAILED");
    drive(&mut partner, &slow, "fail").await;
}

#[tokio::test]
async fn order_of_another_partner_is_not_found() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("25").await;
    let order_id = place(&mut partner, "sbx-approval", 1).await;
    let mut other = operator.add_partner("0").await;
    for verb in ["approve", "reject", "advance", "fail"] {
        for id in [order_id.as_str(), "ord_1"] {
            expect_error(&post(&mut other, id, verb, "").await, 404, "ORDER_NOT_FOUND");
        }
        let path = format!("/api/v1/sandbox/orders/{order_id}/{verb}");
        let headers = partner.headers(&path, b"another body");
        let unsigned = partner
            .client
            .send_raw(Method::POST, &path, headers, "{}")
            .await
            .unwrap();
        expect_error(&unsigned, 401, "INVALID_SIGNATURE");
    }
    assert_eq!(
        partner.read(&format!("/orders/{order_id}")).await["pending_reason"],
        "APPROVAL"
    );
}
