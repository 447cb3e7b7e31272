//! Caps of partners: pending orders, pending amount, cancellations, spend, and the order rate above which
//! orders wait for approval.

use futures_util::future::join_all;
use hyper::Method;
use serde_json::{Value, json};

use crate::approvals::decide;
use crate::multi_node::start_two_nodes;
use vouchsafe_api_client::ApiResponse;
use vouchsafe_test_harness::{
    Instance, Operator, Partner, Sale, WAIT_TIMEOUT, eventually, expect_error, expect_success, id_of,
    json_of, shared, unique,
};

/// Price of the vouchers. USD.
const PRICE: u32 = 25;

async fn set_caps(operator: &mut Operator, partner: &Partner, caps: Value) {
    operator.patch_partner(partner, &json!({ "caps": caps })).await;
}

/// Places an order, again while the service is busy.
async fn order(partner: &mut Partner, sale: &Sale) -> ApiResponse {
    let key = unique("key");
    let answered = eventually("an order to be decided", WAIT_TIMEOUT, async || {
        Some(partner.order_with_key(&key, sale, 1).await).filter(|response| response.status.as_u16() != 503)
    });
    answered.await
}

async fn cancel(partner: &mut Partner, order: &Value) -> ApiResponse {
    let path = format!("/orders/{}/cancel", id_of(order));
    partner.send_signed(Method::POST, &path, "").await
}

/// Sets caps, and waits until the partner has them at a node whose operator did not.
async fn set_caps_of_both(operator: &mut Operator, partner: &Partner, at_second: &mut Partner, caps: Value) {
    for (change, status) in [
        (json!({ "suspended": true }), 403),
        (json!({ "suspended": false, "caps": caps }), 200),
    ] {
        operator.patch_partner(partner, &change).await;
        eventually("the second node to have the change", WAIT_TIMEOUT, async || {
            (at_second.get("/wallets").await.status == status).then_some(())
        })
        .await;
    }
}

/// Places orders at both nodes at once and returns the responses.
async fn order_at_both(first: &Partner, second: &Partner, sale: &Sale, each: usize) -> Vec<ApiResponse> {
    let partners = (0..each).flat_map(|_| [first.reconnect(), second.reconnect()]);
    let orders = partners.map(async |mut partner| order(&mut partner, sale).await);
    join_all(orders).await
}

fn count(responses: &[ApiResponse], status: u16, name: &str, value: &Value) -> usize {
    let is_such = |response: &&ApiResponse| {
        let body = json_of(response);
        response.status == status && (&body[name] == value || &body["error"]["code"] == value)
    };
    responses.iter().filter(is_such).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn caps_hold_for_concurrent_orders_on_two_nodes() {
    let [first, second] = start_two_nodes();
    let mut operator = Operator::of(&first);
    let sale = operator.add_stocked_product(200).await;
    let approved = operator
        .add_product_with(json!({ "approval": "always" }), "25", 5)
        .await;
    let partner = operator.add_partner("100000").await;
    let mut at_second = partner.connect_to(&second.base_url());

    let caps = json!({ "spend_per_day": { "USD": 4 * PRICE } });
    set_caps_of_both(&mut operator, &partner, &mut at_second, caps).await;
    let responses = order_at_both(&partner, &at_second, &sale, 8).await;
    assert_eq!(count(&responses, 201, "status", &json!("DELIVERED")), 4);
    assert_eq!(count(&responses, 429, "code", &json!("SPEND_LIMIT_REACHED")), 12);

    let caps = json!({ "pending_orders": 3 });
    set_caps_of_both(&mut operator, &partner, &mut at_second, caps).await;
    let responses = order_at_both(&partner, &at_second, &approved, 8).await;
    assert_eq!(count(&responses, 202, "status", &json!("PENDING")), 3);
    assert_eq!(
        count(&responses, 429, "code", &json!("PENDING_ORDERS_LIMIT_REACHED")),
        13
    );
    // An order that is delivered at once is not pending.
    expect_success(&order(&mut at_second, &sale).await, 201);

    // Eight orders have been accepted so far.
    let caps = json!({ "approval_over": { "within_s": 86_400, "orders": 8 + 5 } });
    set_caps_of_both(&mut operator, &partner, &mut at_second, caps).await;
    let responses = order_at_both(&partner, &at_second, &sale, 8).await;
    assert_eq!(count(&responses, 201, "status", &json!("DELIVERED")), 5);
    assert_eq!(count(&responses, 202, "pending_reason", &json!("APPROVAL")), 11);
    first.assert_verified();
}

#[tokio::test]
async fn spend_cap_names_the_rest_and_leaves_the_key_unused() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(10).await;
    let mut partner = operator.add_partner("1000").await;
    let caps = json!({ "spend_per_day": { "USD": 60, "EUR": 0 }, "credential_spend_per_day": { "USD": 30 } });
    set_caps(&mut operator, &partner, caps).await;
    let placed = expect_success(&order(&mut partner, &sale).await, 201);
    let key = unique("key");
    let refused = partner.order_with_key(&key, &sale, 1).await;
    let error = expect_error(&refused, 429, "SPEND_LIMIT_REACHED");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("credential") && message.contains("5.00 USD is left"),
        "{message}"
    );
    let wait_s: u32 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=86_400).contains(&wait_s), "{wait_s}");

    // Another credential has its own cap; the partner's covers both, and a cancelled order counts.
    let path = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    let issued = operator.send_json(Method::POST, &path, &json!({})).await;
    let mut other = partner.with_credential(&issued);
    expect_success(&order(&mut other, &sale).await, 201);
    expect_success(&cancel(&mut partner, &placed).await, 200);
    let error = expect_error(&order(&mut other, &sale).await, 429, "SPEND_LIMIT_REACHED");
    assert!(
        error["message"].as_str().unwrap().contains("10.00 USD is left"),
        "{error}"
    );

    // Nothing is stored under the key: with a higher cap the same request succeeds, and is replayed from then
    // on.
    set_caps(&mut operator, &partner, json!({ "spend_per_day": { "USD": 85 } })).await;
    let placed = expect_success(&partner.order_with_key(&key, &sale, 1).await, 201);
    set_caps(&mut operator, &partner, json!({ "spend_per_day": { "USD": 0 } })).await;
    let replayed = expect_success(&partner.order_with_key(&key, &sale, 1).await, 201);
    assert_eq!(id_of(&replayed), id_of(&placed));
    set_caps(&mut operator, &partner, Value::Null).await;
    expect_success(&order(&mut partner, &sale).await, 201);
}

#[tokio::test]
async fn pending_amount_and_cancellations_are_capped_by_settings_and_partner() {
    let service = Instance::start_with(&[
        ("VOUCHSAFE_MAX_PENDING_AMOUNT", "USD=60,JPY=1"),
        ("VOUCHSAFE_MAX_CANCELLATIONS_PER_DAY", "1"),
    ]);
    let mut operator = Operator::of(&service);
    let sale = operator
        .add_product_with(json!({ "approval": "always" }), "25", 5)
        .await;
    let mut partner = operator.add_partner("1000").await;
    let orders = [
        expect_success(&order(&mut partner, &sale).await, 202),
        expect_success(&order(&mut partner, &sale).await, 202),
    ];
    let refused = order(&mut partner, &sale).await;
    let error = expect_error(&refused, 429, "PENDING_AMOUNT_LIMIT_REACHED");
    assert!(
        error["message"].as_str().unwrap().contains("10.00 USD is left"),
        "{error}"
    );
    assert_eq!(refused.header("retry-after"), Some("60"));
    // What is no longer pending makes room.
    expect_success(&decide(&mut operator, "reject", &id_of(&orders[0])).await, 200);
    let third = expect_success(&order(&mut partner, &sale).await, 202);

    expect_success(&cancel(&mut partner, &orders[1]).await, 200);
    let refused = cancel(&mut partner, &third).await;
    expect_error(&refused, 429, "CANCELLATION_LIMIT_REACHED");
    let wait_s: u32 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=86_400).contains(&wait_s), "{wait_s}");
    // A repeated cancellation is none.
    expect_success(&cancel(&mut partner, &orders[1]).await, 200);
    // The partner's own cap overrides that of the settings; the other stays.
    set_caps(&mut operator, &partner, json!({ "cancellations_per_day": 2 })).await;
    expect_success(&cancel(&mut partner, &third).await, 200);
    expect_error(
        &partner.order(&sale, 3).await,
        429,
        "PENDING_AMOUNT_LIMIT_REACHED",
    );
    // An empty object exempts the partner from those of the settings, too.
    set_caps(&mut operator, &partner, json!({})).await;
    expect_success(&partner.order(&sale, 3).await, 202);
    service.assert_verified();
}

#[tokio::test]
async fn concurrent_cancellations_stay_within_the_cap() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(8).await;
    let mut partner = operator.add_partner("1000").await;
    let mut orders = Vec::new();
    for _ in 0..8 {
        orders.push(id_of(&expect_success(&order(&mut partner, &sale).await, 201)));
    }
    set_caps(&mut operator, &partner, json!({ "cancellations_per_day": 3 })).await;
    let cancel = async |order_id: &String| {
        let mut partner = partner.reconnect();
        let path = format!("/orders/{order_id}/cancel");
        let answered = eventually("a cancellation to be decided", WAIT_TIMEOUT, async || {
            let response = partner.send_signed(Method::POST, &path, "").await;
            Some(response.status.as_u16()).filter(|status| *status != 503)
        });
        answered.await
    };
    let statuses = join_all(orders.iter().map(cancel)).await;
    let accepted = statuses.iter().filter(|status| **status == 200).count();
    let refused = statuses.iter().filter(|status| **status == 429).count();
    assert_eq!((accepted, refused), (3, 5), "{statuses:?}");
}

#[tokio::test]
async fn invalid_caps_are_rejected() {
    let mut operator = Operator::of(shared());
    let partner = operator.add_partner("1").await;
    let path = format!("/admin/v1/partners/{}", partner.partner_id);
    for caps in [
        json!({ "approval_over": { "within_s": 0, "orders": 1 } }),
        json!({ "approval_over": { "within_s": 60 } }),
        json!({ "spend_per_day": { "USD": -1 } }),
        json!({ "unknown": 1 }),
        json!({ "pending_orders": -1 }),
    ] {
        let body = json!({ "caps": caps }).to_string();
        let response = operator.call_json(Method::PATCH, &path, body).await;
        expect_error(&response, 422, "VALIDATION_FAILED");
    }
}
