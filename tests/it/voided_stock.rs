//! Voiding of stock by operators.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;

use vouchsafe_test_harness::{Operator, expect_error, expect_success, shared, unique};

async fn void_stock(operator: &mut Operator, body: &Value) -> ApiResponse {
    operator
        .call_json(Method::POST, "/admin/v1/stock/void", body.to_string())
        .await
}

async fn stock_level(operator: &mut Operator, product_id: &str) -> Value {
    operator
        .get(&format!("/admin/v1/stock?product_id={product_id}"))
        .await["data"][0]
        .clone()
}

#[tokio::test]
async fn voided_sku_keeps_sold_vouchers() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(12).await;
    let mut partner = operator.add_partner("1000").await;
    let order = expect_success(&partner.order(&sale, 2).await, 201);
    let body =
        json!({ "product_id": sale.product_id, "denomination": 25, "reason": "recalled by the vendor" });
    assert_eq!(
        expect_success(&void_stock(&mut operator, &body).await, 200),
        json!({ "voided": 10, "rejected": [] })
    );
    assert_eq!(
        expect_success(&void_stock(&mut operator, &body).await, 200)["voided"],
        json!(0)
    );
    let level = stock_level(&mut operator, &sale.product_id).await;
    assert_eq!(
        (&level["free"], &level["sold"], &level["void"]),
        (&json!(0), &json!(2), &json!(10))
    );
    expect_error(&partner.order(&sale, 1).await, 409, "INSUFFICIENT_INVENTORY");
    expect_success(&partner.get_codes(order["order_id"].as_str().unwrap()).await, 200);
    let trail = operator
        .get(&format!(
            "/admin/v1/audit?action=stock.void&subject={}/2500",
            sale.product_id
        ))
        .await;
    assert_eq!(trail["data"].as_array().unwrap().len(), 1);
    assert_eq!(
        trail["data"][0]["after"],
        json!({ "voided": 10, "reason": "recalled by the vendor" })
    );
}

#[tokio::test]
async fn denomination_is_voided_if_it_has_the_expected_number() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(3).await;
    let body = |count: u32| json!({ "product_id": sale.product_id, "denomination": "25", "reason": "recall", "expected_count": count });
    let refused = expect_error(
        &void_stock(&mut operator, &body(0)).await,
        422,
        "VALIDATION_FAILED",
    );
    assert_eq!(refused["details"][0]["field"], "expected_count");
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("3 vouchers would be voided"),
        "{refused}"
    );
    let voided = expect_success(&void_stock(&mut operator, &body(3)).await, 200);
    assert_eq!(voided["voided"], 3);
    let none = void_stock(&mut operator, &body(3)).await;
    expect_error(&none, 422, "VALIDATION_FAILED");
}

#[tokio::test]
async fn voided_codes_are_not_sold() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let [sold, free, voided] = [unique("sold"), unique("free"), unique("out")];
    operator
        .import_csv(
            &sale,
            format!("code,pin,expiry\n{sold},1,2090-01-01\n{free},2,2091-01-01\n{voided},,2092-01-01\n"),
        )
        .await;
    let mut partner = operator.add_partner("1000").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let named = |codes: Value| json!({ "product_id": sale.product_id, "codes": codes, "reason": "stolen" });
    expect_success(
        &void_stock(&mut operator, &named(json!([{ "code": voided }]))).await,
        200,
    );
    let codes = json!([
        { "code": sold, "pin": "1" }, { "code": free, "pin": "2" }, { "code": voided }, { "code": free }, { "code": "never" },
    ]);
    let response = expect_success(&void_stock(&mut operator, &named(codes)).await, 200);
    let rejected = json!([
        { "index": 0, "reason": "SOLD" }, { "index": 2, "reason": "ALREADY_OUT" },
        // The code names the card whatever its PIN: index 3 is the card of index 1.
        { "index": 4, "reason": "UNKNOWN" },
    ]);
    assert_eq!(response, json!({ "voided": 1, "rejected": rejected }));
    expect_error(&partner.order(&sale, 1).await, 409, "INSUFFICIENT_INVENTORY");
    let trail = operator
        .get(&format!(
            "/admin/v1/audit?action=stock.void&subject={}",
            sale.product_id
        ))
        .await;
    let text = trail.to_string();
    assert!(
        !text.contains(&free) && !text.contains(&voided),
        "the audit log contains a code"
    );
}

#[tokio::test]
async fn invalid_void_request_is_rejected() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let id = &sale.product_id;
    for (body, status, code) in [
        (
            json!({ "product_id": id, "reason": "r" }),
            422,
            "VALIDATION_FAILED",
        ),
        (
            json!({ "product_id": id, "denomination": 25, "codes": [{ "code": "A" }], "reason": "r" }),
            422,
            "VALIDATION_FAILED",
        ),
        (
            json!({ "product_id": id, "denomination": 25 }),
            422,
            "VALIDATION_FAILED",
        ),
        (
            json!({ "product_id": id, "denomination": 25, "reason": "" }),
            422,
            "VALIDATION_FAILED",
        ),
        (
            json!({ "product_id": id, "codes": [], "reason": "r" }),
            422,
            "VALIDATION_FAILED",
        ),
        (
            json!({ "product_id": id, "codes": [{ "code": "" }], "reason": "r" }),
            422,
            "VALIDATION_FAILED",
        ),
        (
            json!({ "product_id": id, "denomination": 25.001, "reason": "r" }),
            422,
            "VALIDATION_FAILED",
        ),
        (
            json!({ "product_id": "nothing", "denomination": 25, "reason": "r" }),
            404,
            "PRODUCT_NOT_FOUND",
        ),
    ] {
        expect_error(&void_stock(&mut operator, &body).await, status, code);
    }
    assert_eq!(stock_level(&mut operator, id).await["free"], json!(1));
}
