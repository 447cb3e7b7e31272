//! Validation of order requests.

use serde_json::{Value, json};
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
async fn invalid_json_is_malformed() {
    let mut partner = add_buyer().await;
    let deep = |levels: usize| format!(r#"{{"items":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
    let item = r#"{"product_id":"sbx-instant","denomination":25,"quantity":1}"#;
    let bodies = [
        String::new(),
        "{".to_owned(),
        "{nonsense}".to_owned(),
        "nonsense".to_owned(),
        "[]".to_owned(),
        " {}".to_owned(),
        "null".to_owned(),
        "\u{feff}{\"items\":[]}".to_owned(),
        format!(r#"{{"items":[{item}]}}x"#),
        format!(r#"{{"items":[{item}]}}{{}}"#),
        format!(r#"{{"items":[{item},]}}"#),
        format!(r#"{{"items":[{item}],"reference":"\ud800"}}"#),
        format!("{{\"items\":[{item}],\"reference\":\"a\nb\"}}"),
        r#"{"items":NaN}"#.to_owned(),
        deep(32),
        deep(100_000),
    ];
    for body in bodies {
        let response = partner.send_text(&unique("key"), &body).await;
        assert_eq!(response.status, 400, "{body:.60}: {:?}", response.body);
        expect_error(&response, 400, "MALFORMED_REQUEST");
    }
    // One level less is parsed and then fails validation.
    assert_eq!(
        invalid_fields(&partner.send_text(&unique("key"), &deep(31)).await).len(),
        1
    );
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
async fn invalid_order_fields_are_named() {
    let mut partner = add_buyer().await;
    let item = |field: &str, value: &str| {
        let mut item = json!({ "product_id": "sbx-instant", "denomination": 25, "quantity": 1 });
        let value: Value = serde_json::from_str(value).unwrap();
        item[field] = value;
        json!({ "items": [item] }).to_string()
    };
    let order = |field: &str, value: Value| {
        let item = json!({ "product_id": "sbx-instant", "denomination": 25, "quantity": 1 });
        json!({ "items": [item], field: value }).to_string()
    };
    // Further quantities, references and metadata are cases of the unit tests of the wire format.
    let cases = [
        ("{}".to_owned(), "items"),
        (r#"{"items":{}}"#.to_owned(), "items"),
        (r#"{"items":null}"#.to_owned(), "items"),
        (r#"{"items":[7]}"#.to_owned(), "items[0]"),
        (r#"{"items":[{}]}"#.to_owned(), "items[0].product_id"),
        (item("quantity", "0"), "items[0].quantity"),
        (item("quantity", "1001"), "items[0].quantity"),
        (item("product_id", "7"), "items[0].product_id"),
        (item("product_id", r#""""#), "items[0].product_id"),
        (item("denomination", "25.001"), "items[0].denomination"),
        (item("denomination", r#""25.001""#), "items[0].denomination"),
        (item("denomination", "true"), "items[0].denomination"),
        (item("denomination", "null"), "items[0].denomination"),
        (item("denomination", r#""a lot""#), "items[0].denomination"),
        (item("denomination", r#""""#), "items[0].denomination"),
        (
            item("denomination", "99999999999999999999999999"),
            "items[0].denomination",
        ),
        (item("colour", r#""red""#), "items[0].colour"),
        (order("colour", json!("red")), "colour"),
        (order("currency", json!("XYZ")), "currency"),
        (order("currency", json!(840)), "currency"),
        (order("reference", json!("a\0b")), "reference"),
        (order("reference", json!(7)), "reference"),
        (order("metadata", json!({ "a": "a\0b" })), "metadata"),
        (order("fulfilment", json!("MAYBE")), "fulfilment"),
    ];
    for (body, field) in cases {
        let response = partner.send_text(&unique("key"), &body).await;
        assert_eq!(response.status, 422, "{body:.80}: {:?}", response.body);
        let named = invalid_fields(&response);
        // 1,001 vouchers in one line also exceed the order limit.
        assert!(
            named[0] == field && named[1..].iter().all(|name| name == "items"),
            "{body:.80}: {named:?}"
        );
    }
    assert_eq!(partner.balance("USD").await, "1000.00");
}

#[tokio::test]
async fn duplicate_field_is_rejected() {
    let mut partner = add_buyer().await;
    let item = r#"{"product_id":"sbx-instant","denomination":25,"quantity":1}"#;
    for (body, field) in [
        (format!(r#"{{"items":[{item}],"items":[{item}]}}"#), "items"),
        (
            format!(
                r#"{{"items":[{}]}}"#,
                item.replace("25,", r#"25,"denomination":10,"#)
            ),
            "items[0].denomination",
        ),
        (
            format!(r#"{{"items":[{item}],"metadata":{{"a":1,"a":2}}}}"#),
            "metadata",
        ),
    ] {
        let named = invalid_fields(&partner.send_text(&unique("key"), &body).await);
        assert!(
            named.iter().all(|name| name.starts_with(field)),
            "{body}: {named:?}"
        );
    }
}

#[tokio::test]
async fn out_of_range_numbers_are_rejected() {
    let mut partner = add_buyer().await;
    let mut order = async |denomination: &str, quantity: &str| {
        let body = format!(
            r#"{{"items":[{{"product_id":"sbx-instant","denomination":{denomination},"quantity":{quantity}}}]}}"#
        );
        partner.send_text(&unique("key"), &body).await
    };
    for number in [
        "1e400",
        "-1e400",
        "1E999999999",
        "2.5e-1",
        "-25",
        "-0",
        "0",
        "0.00",
        "1e-400",
    ] {
        for (denomination, quantity) in [(number, "1"), ("25", number)] {
            let response = order(denomination, quantity).await;
            let code = response.error_code().unwrap();
            assert!(
                ["VALIDATION_FAILED", "DENOMINATION_NOT_ALLOWED"].contains(&code.as_str()),
                "{denomination} × {quantity}: {response:?}"
            );
            expect_error(&response, 422, &code);
        }
    }
    // An amount of money has no exponent; a whole number is one however it is written.
    for denomination in ["2.5e1", "25e0", "25E+0"] {
        expect_error(&order(denomination, "1").await, 422, "VALIDATION_FAILED");
    }
    assert_eq!(order("25", "0.1e1").await.status, 201);
}

#[tokio::test]
async fn order_size_limits_are_exact() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let mut partner = operator.add_partner("1").await;
    let mut items = async |lines: usize, quantity: u32| {
        partner
            .send(
                &unique("key"),
                &json!({ "items": vec![order_line(&sale, quantity); lines] }),
            )
            .await
    };
    // At the limit the order is valid but exceeds the balance.
    for (lines, quantity) in [(1, 1_000), (100, 1), (100, 10), (2, 500)] {
        expect_error(&items(lines, quantity).await, 402, "INSUFFICIENT_FUNDS");
    }
    for (lines, quantity) in [(101, 1), (100, 11), (2, 501)] {
        assert_eq!(invalid_fields(&items(lines, quantity).await), ["items"]);
    }
}

#[tokio::test]
async fn reference_and_metadata_limits_are_exact() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    let keys: serde_json::Map<_, _> = (0..50)
        .map(|n| (format!("key-{n:036}"), json!("\u{e9}".repeat(255))))
        .collect();
    let mut body = json!({ "items": [order_line(&sale, 1)], "metadata": keys });
    body["reference"] = json!("\u{1F381}".repeat(128));
    assert_eq!(partner.send(&unique("key"), &body).await.status, 201);
    body["reference"] = json!("\u{1F381}".repeat(129));
    assert_eq!(
        invalid_fields(&partner.send(&unique("key"), &body).await),
        ["reference"]
    );
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
}
