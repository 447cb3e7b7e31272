//! Validation of order requests by the service. Fields and their limits are cases of the unit tests of the
//! wire format.

use serde_json::json;
use vouchsafe_api_client::ApiResponse;

use vouchsafe_test_harness::{Operator, Partner, expect_error, order_line, shared, unique};

/// Asserts a validation error and returns its fields.
fn invalid_fields(response: &ApiResponse) -> Vec<String> {
    let error = expect_error(response, 422, "VALIDATION_FAILED");
    assert_eq!(error["retryable"], false);
    let named = error["details"]
        .as_array()
        .unwrap()
        .iter()
        .map(|detail| detail["field"].as_str().unwrap().to_owned());
    named.collect()
}

async fn add_buyer() -> Partner {
    Operator::of(shared()).add_partner("1000").await
}

#[tokio::test]
async fn body_that_is_no_json_object_is_malformed() {
    let mut partner = add_buyer().await;
    for body in ["", "{nonsense}", "[]", " {}", "null", "\u{feff}{\"items\":[]}"] {
        let response = partner.send_text(&unique("key"), body).await;
        expect_error(&response, 400, "MALFORMED_REQUEST");
    }
}

#[tokio::test]
async fn invalid_utf8_is_malformed() {
    let mut partner = add_buyer().await;
    let mut body = br#"{"items":[],"reference":""#.to_vec();
    body.extend(b"\xff\xfe\"}");
    let headers = partner.headers("/api/v1/orders", &body);
    expect_error(&partner.post(headers, body).await, 400, "MALFORMED_REQUEST");
}

#[tokio::test]
async fn duplicate_field_is_rejected() {
    let mut partner = add_buyer().await;
    let item = r#"{"product_id":"sbx-instant","denomination":25,"denomination":10,"quantity":1}"#;
    let response = partner
        .send_text(&unique("key"), &format!(r#"{{"items":[{item}]}}"#))
        .await;
    assert_eq!(invalid_fields(&response), ["items[0].denomination"]);
}

#[tokio::test]
async fn face_value_that_is_no_amount_of_the_currency_is_rejected() {
    let mut partner = add_buyer().await;
    for denomination in ["1e400", "2.5e1", "-25", "0", "25.001", r#""a lot""#] {
        let body = format!(
            r#"{{"items":[{{"product_id":"sbx-instant","denomination":{denomination},"quantity":1}}]}}"#
        );
        let response = partner.send_text(&unique("key"), &body).await;
        let code = response.error_code().unwrap();
        assert!(
            ["VALIDATION_FAILED", "DENOMINATION_NOT_ALLOWED"].contains(&code.as_str()),
            "{denomination}: {response:?}"
        );
        expect_error(&response, 422, &code);
    }
}

#[tokio::test]
async fn largest_reference_and_metadata_are_stored() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("100").await;
    let keys: serde_json::Map<_, _> = (0..50)
        .map(|n| (format!("key-{n:036}"), json!("\u{e9}".repeat(255))))
        .collect();
    let mut body = json!({ "items": [order_line(&sale, 1)], "metadata": keys });
    body["reference"] = json!("\u{1F381}".repeat(128));
    assert_eq!(partner.send(&unique("key"), &body).await.status, 201);
}

#[tokio::test]
async fn validation_reports_all_errors_at_once() {
    let mut partner = add_buyer().await;
    let item = |quantity| json!({ "product_id": "sbx-instant", "denomination": 25, "quantity": quantity });
    let body =
        json!({ "items": [item(0), item(1), item(1001)], "currency": "EURO", "reference": "x".repeat(129) });
    let mut named = invalid_fields(&partner.send(&unique("key"), &body).await);
    named.retain(|name| name != "items");
    assert_eq!(
        named,
        ["items[0].quantity", "items[2].quantity", "reference", "currency"]
    );
    assert_eq!(partner.balance("USD").await, "1000.00");
}
