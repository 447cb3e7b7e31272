//! What vendors said, as operators are shown it, and what they may say themselves: with the simulator as the vendor.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_load::client::ApiResponse;

use crate::commands::{run_ok, run_json};
use crate::support::{Operator, Partner, WAIT_TIMEOUT, expect_success, eventually, expect_error, shared, text_of, unique};
use crate::vendor_protocol::simulator::Simulator;

/// A vendor that is spoken to, of its own.
async fn add_vendor(operator: &mut Operator, simulator: &Simulator) -> String {
    let vendor = unique("simulated");
    let terms = json!({ "adapter": "http", "url": simulator.url, "credentials": "simulator" });
    operator
        .send_json(Method::PUT, &format!("/admin/v1/vendors/{vendor}"), &terms)
        .await;
    vendor
}

/// An order of two of a product of this vendor, whose id says what goes wrong.
async fn place_order(operator: &mut Operator, partner: &mut Partner, vendor: &str, product: &str) -> ApiResponse {
    let changes = json!({ "route": "vendor", "vendor": vendor });
    operator.put_product(product, changes).await;
    let body = json!({ "items": [{ "product_id": product, "denomination": 25, "quantity": 2 }] });
    partner.send(&unique("key"), &body).await
}

async fn wait_for_purchase(operator: &mut Operator, order_id: &str, such: impl Fn(&Value) -> bool) -> Value {
    let path = format!("/admin/v1/purchases?order_id={order_id}");
    eventually("the purchase is there", WAIT_TIMEOUT, async || {
        let purchase = operator.get(&path).await["data"][0].clone();
        such(&purchase).then_some(purchase)
    })
    .await
}

async fn end_purchase(operator: &mut Operator, purchase_id: &str, reason: &str) -> ApiResponse {
    let path = format!("/admin/v1/purchases/{purchase_id}/end");
    let body = json!({ "reason": reason }).to_string();
    operator.call(Method::POST, &path, "application/json", body).await
}

#[tokio::test]
async fn nonsense_is_refused_shown_counted_and_ended_by_an_operator() {
    let (mut operator, simulator) = (Operator::of(shared()), Simulator::start(&[]));
    let vendor = add_vendor(&mut operator, &simulator).await;
    let mut partner = operator.add_partner("100").await;
    let placed = expect_success(
        &place_order(&mut operator, &mut partner, &vendor, "sim-wrong-schema").await,
        202,
    );
    let order_id = placed["order_id"].as_str().unwrap();
    let refused_answer = |purchase: &Value| purchase["state"] == "refused";
    let purchase = wait_for_purchase(&mut operator, order_id, refused_answer).await;
    assert_eq!(
        (&purchase["answer"], &purchase["kept"]),
        (&json!("REFUSED"), &json!(0))
    );
    let word = purchase["last_word"].as_str().unwrap();
    assert!(word.contains("refused") && !word.contains("SIMULATED"), "{word}");
    let metrics = operator.call(Method::GET, "/metrics", "text/plain", "").await;
    let line = format!("vouchsafe_vendor_responses_rejected_total{{vendor=\"{vendor}\"}}");
    assert!(text_of(&metrics).contains(&line), "{line}");
    let listed = operator
        .get(&format!("/admin/v1/purchases?vendor={vendor}&state=refused"))
        .await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    let list = run_ok(&["purchase", "list", "--vendor", &vendor, "--state", "refused"]);
    assert!(list.contains(order_id), "{list}");
    // The vendor cannot tell, so the operator does; the partner has its money back.
    let purchase_id = purchase["purchase_id"].as_str().unwrap();
    let ended = run_json(&[
        "purchase",
        "end",
        purchase_id,
        "--reason",
        "it says nothing that can be read",
    ]);
    assert_eq!(
        (&ended["state"], &ended["next_at"]),
        (&json!("ended"), &Value::Null)
    );
    let again = expect_success(&end_purchase(&mut operator, purchase_id, "another reason").await, 200);
    assert_eq!(again, ended);
    eventually("the order is paid back", WAIT_TIMEOUT, async || {
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
    assert_eq!(entry["after"]["reason"], "it says nothing that can be read");
}

#[tokio::test]
async fn a_vendor_that_is_out_of_stock_is_believed_until_it_is_put_again() {
    let (mut operator, simulator) = (Operator::of(shared()), Simulator::start(&[]));
    let vendor = add_vendor(&mut operator, &simulator).await;
    let mut partner = operator.add_partner("200").await;
    let placed = expect_success(
        &place_order(&mut operator, &mut partner, &vendor, "sim-out-of-stock").await,
        202,
    );
    let ended = |purchase: &Value| purchase["state"] == "ended";
    let purchase = wait_for_purchase(&mut operator, placed["order_id"].as_str().unwrap(), ended).await;
    assert_eq!(purchase["answer"], "OUT_OF_STOCK");
    let wish = json!({ "items": [{ "product_id": "sim-out-of-stock", "denomination": 25, "quantity": 1 }] });
    let refusal = eventually("the vendor is believed", WAIT_TIMEOUT, async || {
        let answer = partner.send(&unique("key"), &wish).await;
        (answer.status == 409).then_some(answer)
    })
    .await;
    let error = expect_error(&refusal, 409, "INSUFFICIENT_INVENTORY");
    assert!(
        error["message"].as_str().unwrap().contains("sim-out-of-stock"),
        "{error}"
    );
    let open = format!("/admin/v1/purchases?vendor={vendor}&state=open");
    eventually("the vendor has said its last word of all", WAIT_TIMEOUT, async || {
        let data = operator.get(&open).await["data"].clone();
        data.as_array().unwrap().is_empty().then_some(())
    })
    .await;
    // Other terms, another word: it is asked again.
    let terms = json!({ "adapter": "http", "url": simulator.url, "concurrency": 2 });
    operator
        .send_json(Method::PUT, &format!("/admin/v1/vendors/{vendor}"), &terms)
        .await;
    eventually("it may be ordered again", WAIT_TIMEOUT, async || {
        (partner.send(&unique("key"), &wish).await.status == 202).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_code_that_was_sold_before_is_quarantined_and_never_delivered() {
    let (mut operator, simulator) = (Operator::of(shared()), Simulator::start(&[]));
    let vendor = add_vendor(&mut operator, &simulator).await;
    let mut partner = operator.add_partner("1000").await;
    let mut orders = Vec::new();
    for _ in 0..2 {
        let placed = expect_success(
            &place_order(&mut operator, &mut partner, &vendor, "sim-repeat-code").await,
            202,
        );
        let order_id = placed["order_id"].as_str().unwrap().to_owned();
        wait_for_purchase(&mut operator, &order_id, |purchase| purchase["state"] == "ended").await;
        orders.push(order_id);
    }
    let purchase = wait_for_purchase(&mut operator, &orders[1], |purchase| purchase["state"] == "ended").await;
    assert_eq!(
        (&purchase["sold"], &purchase["kept"]),
        (&json!(2), &json!(1)),
        "{purchase}"
    );
    assert_eq!(purchase["quarantined"].as_array().unwrap().len(), 1);
    eventually("the rest is paid back", WAIT_TIMEOUT, async || {
        let order = partner.read(&format!("/orders/{}", orders[1])).await;
        (order["closed"] == true && order["refunded_amount"] == json!(25.0)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn other_terms_are_in_force_with_the_next_call() {
    let (mut operator, simulator) = (Operator::of(shared()), Simulator::start(&[]));
    let vendor = unique("moved");
    let path = format!("/admin/v1/vendors/{vendor}");
    operator
        .send_json(Method::PUT, &path, &json!({ "adapter": "manual" }))
        .await;
    let mut partner = operator.add_partner("100").await;
    let placed = expect_success(
        &place_order(&mut operator, &mut partner, &vendor, &unique("product")).await,
        202,
    );
    let order_id = placed["order_id"].as_str().unwrap();
    wait_for_purchase(&mut operator, order_id, |purchase| purchase["state"] == "open").await;
    let terms = json!({ "adapter": "http", "url": simulator.url, "credentials": "simulator" });
    operator.send_json(Method::PUT, &path, &terms).await;
    eventually("it is bought", WAIT_TIMEOUT, async || {
        let order = partner.read(&format!("/orders/{order_id}")).await;
        (order["status"] == "DELIVERED").then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_is_no_purchase_is_not_found_and_a_product_names_a_vendor_that_there_is() {
    let mut operator = Operator::of(shared());
    for id in ["00000000-0000-0000-0000-000000000000", "nothing"] {
        expect_error(&end_purchase(&mut operator, id, "none").await, 404, "PURCHASE_NOT_FOUND");
    }
    let state = operator
        .call(
            Method::GET,
            "/admin/v1/purchases?state=lost",
            "application/json",
            "",
        )
        .await;
    expect_error(&state, 422, "VALIDATION_FAILED");
    let product = json!({
        "name": "Card", "brand": "Brand", "category_id": "retail", "vendor": "nobody-knows", "currency": "USD",
        "countries": [], "denominations": [25], "expiry_policy": { "type": "NONE" }, "redemption": {}, "route": "vendor",
    });
    let path = format!("/admin/v1/products/{}", unique("product"));
    let answer = operator
        .call(Method::PUT, &path, "application/json", product.to_string())
        .await;
    let error = expect_error(&answer, 422, "VALIDATION_FAILED");
    assert_eq!(error["details"][0]["field"], "vendor");
}
