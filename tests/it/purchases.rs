//! Purchases as operators see and end them, with the vendor simulator.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;

use crate::commands::{run_json, run_ok};
use vouchsafe_test_harness::VendorSimulator;
use vouchsafe_test_harness::{
    Operator, Partner, WAIT_TIMEOUT, eventually, expect_error, expect_success, id_of, shared, text_of, unique,
};

/// Creates a vendor with the HTTP adapter.
async fn add_vendor(operator: &mut Operator, simulator: &VendorSimulator) -> String {
    let vendor = unique("simulated");
    let terms = json!({ "adapter": "http", "url": simulator.url, "credentials": "simulator" });
    operator
        .send_json(Method::PUT, &format!("/admin/v1/vendors/{vendor}"), &terms)
        .await;
    vendor
}

/// Orders two vouchers of a product of this vendor. The product id selects the fault.
async fn place_order(
    operator: &mut Operator,
    partner: &mut Partner,
    vendor: &str,
    product: &str,
) -> ApiResponse {
    let changes = json!({ "route": "vendor", "vendor": vendor });
    operator.put_product(product, changes).await;
    let body = json!({ "items": [{ "product_id": product, "denomination": 25, "quantity": 2 }] });
    partner.send(&unique("key"), &body).await
}

async fn wait_for_purchase(
    operator: &mut Operator,
    order_id: &str,
    is_match: impl Fn(&Value) -> bool,
) -> Value {
    let path = format!("/admin/v1/purchases?order_id={order_id}");
    eventually("the purchase to match", WAIT_TIMEOUT, async || {
        let purchase = operator.get(&path).await["data"][0].clone();
        is_match(&purchase).then_some(purchase)
    })
    .await
}

async fn end_purchase(operator: &mut Operator, purchase_id: &str, reason: &str) -> ApiResponse {
    let path = format!("/admin/v1/purchases/{purchase_id}/end");
    let body = json!({ "reason": reason }).to_string();
    operator.call_json(Method::POST, &path, body).await
}

#[tokio::test]
async fn invalid_vendor_response_is_shown_counted_and_ended_by_operator() {
    let (mut operator, simulator) = (Operator::of(shared()), VendorSimulator::start(&[]));
    let vendor = add_vendor(&mut operator, &simulator).await;
    let mut partner = operator.add_partner("100").await;
    let placed = expect_success(
        &place_order(&mut operator, &mut partner, &vendor, "sim-wrong-schema").await,
        202,
    );
    let order_id = placed["order_id"].as_str().unwrap();
    let is_refused = |purchase: &Value| purchase["state"] == "refused";
    let purchase = wait_for_purchase(&mut operator, order_id, is_refused).await;
    assert_eq!(
        (&purchase["last_response"], &purchase["imported"]),
        (&json!("REFUSED"), &json!(0))
    );
    let message = purchase["last_message"].as_str().unwrap();
    assert!(
        message.contains("invalid vendor response") && !message.contains("SIMULATED"),
        "{message}"
    );
    let metrics = operator.call(Method::GET, "/metrics", "text/plain", "").await;
    let line = format!("vouchsafe_vendor_responses_rejected_total{{vendor=\"{vendor}\"}}");
    assert!(text_of(&metrics).contains(&line), "{line}");
    let listed = operator
        .get(&format!("/admin/v1/purchases?vendor={vendor}&state=refused"))
        .await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    let list = run_ok(&["purchase", "list", "--vendor", &vendor, "--state", "refused"]);
    assert!(list.contains(order_id), "{list}");
    // The operator ends the purchase, since the vendor's response is unusable; the partner is refunded.
    let purchase_id = purchase["purchase_id"].as_str().unwrap();
    let ended = run_json(&[
        "purchase",
        "end",
        purchase_id,
        "--reason",
        "unreadable vendor response",
    ]);
    assert_eq!(
        (&ended["state"], &ended["next_attempt_at"]),
        (&json!("ended"), &Value::Null)
    );
    let repeated = expect_success(
        &end_purchase(&mut operator, purchase_id, "another reason").await,
        200,
    );
    assert_eq!(repeated, ended);
    assert_eq!(run_json(&["purchase", "show", purchase_id]), ended);
    let unknown = operator.call_json(Method::GET, "/admin/v1/purchases/1", "").await;
    expect_error(&unknown, 404, "PURCHASE_NOT_FOUND");
    eventually("the order to be refunded", WAIT_TIMEOUT, async || {
        let order = partner.read(&format!("/orders/{order_id}")).await;
        (order["status"] == "REFUNDED").then_some(())
    })
    .await;
    assert_eq!(partner.balance("USD").await, "100.00");
    let trail = operator
        .get(&format!(
            "/admin/v1/audit?action=purchase.end&subject={purchase_id}"
        ))
        .await;
    let [entry] = &trail["data"].as_array().unwrap()[..] else {
        panic!("{trail}");
    };
    assert_eq!(entry["after"]["reason"], "unreadable vendor response");
}

#[tokio::test]
async fn out_of_stock_vendor_blocks_orders_until_reconfigured() {
    let (mut operator, simulator) = (Operator::of(shared()), VendorSimulator::start(&[]));
    let vendor = add_vendor(&mut operator, &simulator).await;
    let mut partner = operator.add_partner("200").await;
    let placed = expect_success(
        &place_order(&mut operator, &mut partner, &vendor, "sim-out-of-stock").await,
        202,
    );
    let ended = |purchase: &Value| purchase["state"] == "ended";
    let purchase = wait_for_purchase(&mut operator, placed["order_id"].as_str().unwrap(), ended).await;
    assert_eq!(purchase["last_response"], "OUT_OF_STOCK");
    let order_body =
        json!({ "items": [{ "product_id": "sim-out-of-stock", "denomination": 25, "quantity": 1 }] });
    let rejection = eventually(
        "the out-of-stock response to take effect",
        WAIT_TIMEOUT,
        async || {
            let response = partner.send(&unique("key"), &order_body).await;
            (response.status == 409).then_some(response)
        },
    )
    .await;
    let error = expect_error(&rejection, 409, "INSUFFICIENT_INVENTORY");
    assert!(
        error["message"].as_str().unwrap().contains("sim-out-of-stock"),
        "{error}"
    );
    let open = format!("/admin/v1/purchases?vendor={vendor}&state=open");
    eventually("all purchases to end", WAIT_TIMEOUT, async || {
        let data = operator.get(&open).await["data"].clone();
        data.as_array().unwrap().is_empty().then_some(())
    })
    .await;
    // A configuration change resets the out-of-stock state.
    let terms = json!({ "adapter": "http", "url": simulator.url, "concurrency": 2 });
    operator
        .send_json(Method::PUT, &format!("/admin/v1/vendors/{vendor}"), &terms)
        .await;
    eventually("orders to be accepted again", WAIT_TIMEOUT, async || {
        (partner.send(&unique("key"), &order_body).await.status == 202).then_some(())
    })
    .await;
}

#[tokio::test]
async fn duplicate_vendor_code_is_quarantined() {
    repeated_code_is_quarantined("sim-repeat-code").await;
}

#[tokio::test]
async fn vendor_code_with_another_pin_is_quarantined() {
    repeated_code_is_quarantined("sim-other-pin").await;
}

/// Buys twice; the first voucher of the second purchase has a code of the first one.
async fn repeated_code_is_quarantined(product: &str) {
    let (mut operator, simulator) = (Operator::of(shared()), VendorSimulator::start(&[]));
    let vendor = add_vendor(&mut operator, &simulator).await;
    let mut partner = operator.add_partner("1000").await;
    let mut orders = Vec::new();
    for _ in 0..2 {
        let response = place_order(&mut operator, &mut partner, &vendor, product).await;
        let placed = expect_success(&response, 202);
        let order_id = id_of(&placed);
        wait_for_purchase(&mut operator, &order_id, |purchase| purchase["state"] == "ended").await;
        orders.push(order_id);
    }
    let purchase =
        wait_for_purchase(&mut operator, &orders[1], |purchase| purchase["state"] == "ended").await;
    assert_eq!(
        (&purchase["sold"], &purchase["imported"]),
        (&json!(2), &json!(1)),
        "{purchase}"
    );
    assert_eq!(purchase["quarantined"].as_array().unwrap().len(), 1);
    eventually("the remainder to be refunded", WAIT_TIMEOUT, async || {
        let order = partner.read(&format!("/orders/{}", orders[1])).await;
        (order["closed"] == true && order["refunded_amount"] == json!(25.0)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn vendor_change_applies_to_next_call() {
    let (mut operator, simulator) = (Operator::of(shared()), VendorSimulator::start(&[]));
    let vendor = unique("moved");
    let path = format!("/admin/v1/vendors/{vendor}");
    operator
        .send_json(Method::PUT, &path, &json!({ "adapter": "manual" }))
        .await;
    let mut partner = operator.add_partner("100").await;
    let response = place_order(&mut operator, &mut partner, &vendor, &unique("product")).await;
    let placed = expect_success(&response, 202);
    let order_id = placed["order_id"].as_str().unwrap();
    wait_for_purchase(&mut operator, order_id, |purchase| purchase["state"] == "open").await;
    let terms = json!({ "adapter": "http", "url": simulator.url, "credentials": "simulator" });
    operator.send_json(Method::PUT, &path, &terms).await;
    eventually("the order to be delivered", WAIT_TIMEOUT, async || {
        let order = partner.read(&format!("/orders/{order_id}")).await;
        (order["status"] == "DELIVERED").then_some(())
    })
    .await;
}

#[tokio::test]
async fn unknown_purchase_and_vendor_are_rejected() {
    let mut operator = Operator::of(shared());
    for id in ["00000000-0000-0000-0000-000000000000", "nothing"] {
        expect_error(
            &end_purchase(&mut operator, id, "none").await,
            404,
            "PURCHASE_NOT_FOUND",
        );
    }
    let state = operator
        .call_json(Method::GET, "/admin/v1/purchases?state=lost", "")
        .await;
    expect_error(&state, 422, "VALIDATION_FAILED");
    let product = json!({
        "name": "Card", "brand": "Brand", "category_id": "retail", "vendor": "nobody-knows", "currency": "USD",
        "countries": [], "denominations": [25], "expiry_policy": { "type": "NONE" }, "redemption": {}, "route": "vendor",
    });
    let path = format!("/admin/v1/products/{}", unique("product"));
    let response = operator.call_json(Method::PUT, &path, product.to_string()).await;
    let error = expect_error(&response, 422, "VALIDATION_FAILED");
    assert_eq!(error["details"][0]["field"], "vendor");
}
