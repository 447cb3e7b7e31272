//! Manual fulfilment of pending orders by operators. Responses never contain codes.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;

use crate::commands::run_json;
use vouchsafe_test_harness::{
    Operator, Partner, Sale, WAIT_TIMEOUT, eventually, expect_error, expect_success, id_of, shared, text_of,
    unique,
};

/// Prefix of every code in these tests.
const CANARY: &str = "CNRYHAND";

/// Creates a product of a manual vendor and places an order.
async fn place_pending_order(operator: &mut Operator, quantity: u32) -> (Sale, Partner, String) {
    let sale = operator.add_product("vendor", 0).await;
    let mut partner = operator.add_partner("1000").await;
    let placed = expect_success(&partner.order(&sale, quantity).await, 202);
    let order_id = id_of(&placed);
    (sale, partner, order_id)
}

fn codes(count: usize) -> Vec<Value> {
    let code =
        |_| json!({ "code": format!("{CANARY}-{}", unique("code")), "pin": "0000", "expiry": "2099-12-31" });
    (0..count).map(code).collect()
}

async fn fulfil(operator: &mut Operator, order_id: &str, body: &Value) -> ApiResponse {
    let path = format!("/admin/v1/orders/{order_id}/fulfil");
    let response = operator.call_json(Method::POST, &path, body.to_string()).await;
    assert!(!text_of(&response).contains(CANARY), "{}", text_of(&response));
    response
}

/// Returns the imported and duplicate counts and the order status.
fn fulfilment_summary(response: &ApiResponse) -> [Value; 3] {
    let report = expect_success(response, 200);
    ["imported", "duplicates"]
        .map(|field| report[field].clone())
        .into_iter()
        .chain([report["order"]["status"].clone()])
        .collect::<Vec<_>>()
        .try_into()
        .unwrap()
}

#[tokio::test]
async fn repeated_partial_fulfilment_imports_once() {
    let mut operator = Operator::of(shared());
    let (_, mut partner, order_id) = place_pending_order(&mut operator, 3).await;
    let all = codes(3);
    let part = json!({ "vouchers": all[..2] });
    for [imported, duplicates] in [[2, 0], [0, 2]] {
        let response = fulfil(&mut operator, &order_id, &part).await;
        let expected = [json!(imported), json!(duplicates), json!("PARTIALLY_DELIVERED")];
        assert_eq!(fulfilment_summary(&response), expected);
    }
    for [imported, duplicates] in [[1, 2], [0, 3]] {
        let response = fulfil(&mut operator, &order_id, &json!({ "vouchers": all })).await;
        let expected = [json!(imported), json!(duplicates), json!("DELIVERED")];
        assert_eq!(fulfilment_summary(&response), expected);
    }
    let order = partner.read(&format!("/orders/{order_id}")).await;
    assert_eq!(
        (&order["fulfilled_from"], &order["closed"]),
        (&json!("vendor"), &json!(true))
    );
    let read = expect_success(&partner.get_codes(&order_id).await, 200);
    assert_eq!(read["data"].as_array().unwrap().len(), 3);
    assert_eq!(partner.balance("USD").await, "925.00");
    // Fulfilment completes the purchase; a completed order cannot be fulfilled again.
    let purchases = format!("/admin/v1/purchases?order_id={order_id}");
    eventually("the purchase has ended", WAIT_TIMEOUT, async || {
        (operator.get(&purchases).await["data"][0]["state"] == "ended").then_some(())
    })
    .await;
    let more = fulfil(&mut operator, &order_id, &json!({ "vouchers": codes(1) })).await;
    expect_error(&more, 409, "ORDER_NOT_FULFILLABLE");
    let trail = operator
        .get(&format!("/admin/v1/audit?action=order.fulfil&subject={order_id}"))
        .await;
    let entries = trail["data"].as_array().unwrap().iter();
    let counts: Vec<_> = entries.map(|entry| entry["after"]["imported"].clone()).collect();
    assert_eq!(counts, [1, 2], "newest first, no entry for duplicates: {trail}");
    assert!(!trail.to_string().contains(CANARY));
}

#[tokio::test]
async fn invalid_fulfilment_is_rejected_without_quoting_codes() {
    let mut operator = Operator::of(shared());
    let (sale, mut partner, order_id) = place_pending_order(&mut operator, 2).await;
    let long = format!("{CANARY}{}", "x".repeat(600));
    for (body, field) in [
        (json!({ "vouchers": [] }), "vouchers"),
        (json!({ "vouchers": codes(1_001) }), "vouchers"),
        (json!({ "vouchers": codes(3) }), "vouchers"),
        (json!({ "vouchers": [{ "code": long }] }), "vouchers[0]"),
        (
            json!({ "vouchers": [{ "code": 47_114_711 }] }),
            "vouchers[0].code",
        ),
        (
            json!({ "vouchers": [{ "code": "CNRYHAND-1" }, { "code": "CNRYHAND-2", "expiry": "2020-01-01" }] }),
            "vouchers[1]",
        ),
        (
            json!({ "vouchers": [{ "code": "CNRYHAND-3", "pin": "1" }, { "code": "CNRYHAND-3", "pin": "2" }] }),
            "vouchers[1]",
        ),
        (
            json!({ "vouchers": [{ "code": "CNRYHAND-4", "url": "javascript:alert(1)" }] }),
            "vouchers[0]",
        ),
        (
            json!({ "product_id": sale.product_id, "vouchers": codes(1) }),
            "product_id",
        ),
        (
            json!({ "product_id": "another", "denomination": 25, "vouchers": codes(1) }),
            "product_id",
        ),
    ] {
        let response = fulfil(&mut operator, &order_id, &body).await;
        let error = expect_error(&response, 422, "VALIDATION_FAILED");
        assert_eq!(error["details"][0]["field"], field, "{error}");
        assert!(!error.to_string().contains("47114711"), "{error}");
    }
    assert_eq!(
        partner.read(&format!("/orders/{order_id}")).await["status"],
        "PENDING"
    );
    let unknown = "ord_00000000000000000000000000000000";
    let response = fulfil(&mut operator, unknown, &json!({ "vouchers": codes(1) })).await;
    expect_error(&response, 404, "ORDER_NOT_FOUND");
    let placed = expect_success(
        &partner.order(&operator.add_stocked_product(1).await, 1).await,
        201,
    );
    let delivered = placed["order_id"].as_str().unwrap();
    let response = fulfil(&mut operator, delivered, &json!({ "vouchers": codes(1) })).await;
    expect_error(&response, 409, "ORDER_NOT_FULFILLABLE");
}

#[tokio::test]
async fn multi_product_order_is_fulfilled_per_product_by_command() {
    let mut operator = Operator::of(shared());
    let sales = [
        operator.add_product("vendor", 0).await,
        operator.add_product("vendor", 0).await,
    ];
    let mut partner = operator.add_partner("100").await;
    let items = sales
        .each_ref()
        .map(|sale| json!({ "product_id": sale.product_id, "denomination": 25, "quantity": 1 }));
    let placed = expect_success(
        &partner.send(&unique("key"), &json!({ "items": items })).await,
        202,
    );
    let order_id = placed["order_id"].as_str().unwrap();
    let response = fulfil(&mut operator, order_id, &json!({ "vouchers": codes(1) })).await;
    let error = expect_error(&response, 422, "VALIDATION_FAILED");
    assert_eq!(error["details"][0]["field"], "product_id");
    let directory = tempfile::tempdir().unwrap();
    let mut statuses = Vec::new();
    for (sale, name) in sales.iter().zip(["vouchers.csv", "vouchers.ndjson"]) {
        let code = format!("{CANARY}-{}", unique("code"));
        let text = match name {
            "vouchers.csv" => format!("code,pin\n{code},0000\n"),
            _ => format!("{}\n", json!({ "code": code, "pin": "0000" })),
        };
        let file = directory.path().join(name);
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        let product = sale.product_id.as_str();
        let arguments = [
            "order",
            "fulfil",
            order_id,
            file,
            "--product",
            product,
            "--denomination",
            "25",
        ];
        let report = run_json(&arguments);
        assert!(!report.to_string().contains(CANARY));
        statuses.push(report["order"]["status"].clone());
    }
    assert_eq!(statuses, ["PARTIALLY_DELIVERED", "DELIVERED"]);
}
