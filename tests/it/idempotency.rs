//! Idempotency keys (contract §5).

use hyper::Method;
use hyper::header::HeaderValue;
use serde_json::json;
use vouchsafe_api_client::ApiResponse;
use vouchsafe_api_client::partner::{IDEMPOTENCY_KEY, unix_seconds};

use vouchsafe_test_harness::{
    Operator, Partner, Sale, expect_error, expect_stored_error, expect_success, order_body, shared, text_of,
    unique,
};

/// Asserts that the second response replays the first.
pub(crate) fn assert_replay(first: &ApiResponse, second: &ApiResponse) {
    assert_eq!((second.status, text_of(second)), (first.status, text_of(first)));
    assert_eq!(second.header("idempotent-replayed"), Some("true"));
    assert_eq!(second.header("location"), first.header("location"));
    assert_eq!(second.header("content-type"), first.header("content-type"));
}

#[tokio::test]
async fn repeated_request_returns_stored_bytes() {
    let mut operator = Operator::of(shared());
    let [stocked, bought] = [
        operator.add_stocked_product(2).await,
        operator.add_product("vendor", 0).await,
    ];
    let mut partner = operator.add_partner("100").await;
    for (sale, status) in [(stocked, 201), (bought, 202)] {
        let key = unique("key");
        let first = partner.order_with_key(&key, &sale, 1).await;
        expect_success(&first, status);
        for _ in 0..3 {
            assert_replay(&first, &partner.reconnect().order_with_key(&key, &sale, 1).await);
        }
    }
    assert_eq!(partner.balance("USD").await, "50.00");
    assert_eq!(
        partner.read("/transactions").await["data"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[tokio::test]
async fn retry_signed_with_short_path_is_replayed() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    let (key, body) = (unique("key"), order_body(&sale, 1).to_string());
    let first = partner.send_text(&key, &body).await;
    let mut headers = partner.headers_at(unix_seconds() - 100, "/orders", body.as_bytes());
    headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_str(&key).unwrap());
    assert_replay(&first, &partner.post(headers, body).await);
}

#[tokio::test]
async fn reused_key_with_other_body_is_rejected() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(5).await;
    let mut partner = operator.add_partner("100").await;
    let (key, body) = (unique("key"), order_body(&sale, 1).to_string());
    let first = partner.send_text(&key, &body).await;
    expect_success(&first, 201);
    // Bodies are compared by bytes, not by meaning, even if the new body is itself invalid.
    let spaced = body.replacen(':', ": ", 1);
    for other in [
        order_body(&sale, 2).to_string(),
        spaced,
        body.replace(&sale.product_id, "no-such-product"),
    ] {
        let response = partner.send_text(&key, &other).await;
        expect_error(&response, 422, "IDEMPOTENCY_KEY_REUSED");
    }
    assert_eq!(partner.balance("USD").await, "75.00");
    assert_replay(&first, &partner.send_text(&key, &body).await);
}

#[tokio::test]
async fn invalid_or_repeated_key_header_is_rejected() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(5).await;
    let mut partner = operator.add_partner("100").await;
    let body = order_body(&sale, 1).to_string();
    let long = "k".repeat(256);
    let wrong: [&[&[u8]]; 9] = [
        &[],
        &[b""],
        &[long.as_bytes()],
        &["schl\u{fc}ssel".as_bytes()],
        &[b"schl\xfcssel"],
        &[b"two words"],
        &[b"a\tb"],
        &[b"twice", b"twice"],
        &[b"one", b"other"],
    ];
    for (n, values) in wrong.into_iter().enumerate() {
        let mut headers = partner.headers("/api/v1/orders", body.as_bytes());
        headers.remove(IDEMPOTENCY_KEY);
        for value in values {
            headers.append(IDEMPOTENCY_KEY, HeaderValue::from_bytes(value).unwrap());
        }
        let response = partner.post(headers, body.clone()).await;
        let is_missing = n < 2;
        let code = if is_missing {
            "MISSING_IDEMPOTENCY_KEY"
        } else {
            "INVALID_IDEMPOTENCY_KEY"
        };
        let error = expect_error(&response, 400, code);
        assert_eq!(error["retryable"], false);
    }
    assert_eq!(partner.balance("USD").await, "100.00");
    for key in [
        "!",
        "~",
        r#"{"order":7}"#,
        &format!("{}{}", unique("k"), &long)[..255],
    ] {
        expect_success(&partner.send_text(key, &body).await, 201);
    }
}

#[tokio::test]
async fn idempotency_keys_are_scoped_per_partner() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let (mut first, mut second) = (
        operator.add_partner("100").await,
        operator.add_partner("100").await,
    );
    let key = unique("key");
    let one = first.order_with_key(&key, &sale, 1).await;
    let other = second.order_with_key(&key, &sale, 1).await;
    assert_ne!(
        expect_success(&one, 201)["order_id"],
        expect_success(&other, 201)["order_id"]
    );
    assert_eq!(other.header("idempotent-replayed"), None);
    assert_replay(&one, &first.order_with_key(&key, &sale, 1).await);
    assert_replay(&other, &second.order_with_key(&key, &sale, 1).await);
}

#[tokio::test]
async fn operator_reference_is_not_a_partner_key() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("0").await;
    let text = unique("same-text");
    let path = format!("/admin/v1/partners/{}/wallets/USD/top-ups", partner.partner_id);
    operator
        .send_json(Method::POST, &path, &json!({ "amount": 25, "reference": text }))
        .await;
    expect_success(&partner.order_with_key(&text, &sale, 1).await, 201);
}

#[tokio::test]
async fn insufficient_funds_after_top_up_is_replayed() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("0").await;
    let key = unique("key");
    let first = partner.order_with_key(&key, &sale, 1).await;
    expect_error(&first, 402, "INSUFFICIENT_FUNDS");
    operator.top_up(&partner.partner_id, "USD", "100").await;
    let second = partner.order_with_key(&key, &sale, 1).await;
    expect_stored_error(&second, 402, "INSUFFICIENT_FUNDS");
    assert_replay(&first, &second);
    expect_success(&partner.order(&sale, 1).await, 201);
}

#[tokio::test]
async fn insufficient_inventory_after_import_is_replayed() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("100").await;
    let key = unique("key");
    let first = partner.order_with_key(&key, &sale, 2).await;
    expect_error(&first, 409, "INSUFFICIENT_INVENTORY");
    operator.restock(&sale, 3, "").await;
    let second = partner.order_with_key(&key, &sale, 2).await;
    expect_stored_error(&second, 409, "INSUFFICIENT_INVENTORY");
    assert_replay(&first, &second);
    expect_success(&partner.order(&sale, 2).await, 201);
}

#[tokio::test]
async fn other_rejections_leave_key_unused() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let sale = Sale {
        product_id: unique("product"),
        denomination: "30",
    };
    let key = unique("key");
    let body = order_body(&sale, 1);
    expect_error(&partner.send(&key, &body).await, 404, "PRODUCT_NOT_FOUND");
    operator
        .put_product(&sale.product_id, json!({ "denominations": [25] }))
        .await;
    expect_error(&partner.send(&key, &body).await, 422, "DENOMINATION_NOT_ALLOWED");
    operator
        .put_product(
            &sale.product_id,
            json!({ "denominations": [25, 30], "discontinued": true }),
        )
        .await;
    expect_error(&partner.send(&key, &body).await, 409, "PRODUCT_UNAVAILABLE");
    // A body that was never executed does not bind the key.
    expect_error(
        &partner.send(&key, &json!({ "items": [] })).await,
        422,
        "VALIDATION_FAILED",
    );
    expect_error(&partner.send_text(&key, "{").await, 400, "MALFORMED_REQUEST");
    operator
        .put_product(&sale.product_id, json!({ "denominations": [25, 30] }))
        .await;
    operator.restock(&sale, 1, "").await;
    let response = partner.send(&key, &body).await;
    expect_success(&response, 201);
    assert_eq!(response.header("idempotent-replayed"), None);
}

#[tokio::test]
async fn replay_ignores_current_state() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("25").await;
    let key = unique("key");
    let first = partner.order_with_key(&key, &sale, 1).await;
    expect_success(&first, 201);
    // The order has used up stock and money; now the product is discontinued too.
    assert_replay(&first, &partner.order_with_key(&key, &sale, 1).await);
    operator
        .put_product(&sale.product_id, json!({ "discontinued": true }))
        .await;
    assert_replay(&first, &partner.order_with_key(&key, &sale, 1).await);
}

#[tokio::test]
async fn blocked_partner_gets_no_stored_response() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(3).await;
    let mut partners: [Partner; 3] = [
        operator.add_partner("25").await,
        operator.add_partner("25").await,
        operator.add_partner("25").await,
    ];
    let key = unique("key");
    for partner in &mut partners {
        expect_success(&partner.order_with_key(&key, &sale, 1).await, 201);
    }
    let [revoked, suspended, moved] = &mut partners;
    operator.revoke_credential(revoked).await;
    operator
        .patch_partner(suspended, &json!({ "suspended": true }))
        .await;
    operator
        .patch_partner(moved, &json!({ "allowlist": ["192.0.2.0/24"] }))
        .await;
    let response = revoked.order_with_key(&key, &sale, 1).await;
    expect_error(&response, 401, "INVALID_CREDENTIALS");
    let response = suspended.order_with_key(&key, &sale, 1).await;
    expect_error(&response, 403, "PARTNER_SUSPENDED");
    expect_error(&moved.order_with_key(&key, &sale, 1).await, 403, "IP_NOT_ALLOWED");
}

#[tokio::test]
async fn replay_with_invalid_signature_is_rejected() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("25").await;
    let (key, body) = (unique("key"), order_body(&sale, 1).to_string());
    expect_success(&partner.send_text(&key, &body).await, 201);
    let mut headers = partner.headers("/api/v1/orders", b"{}");
    headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_str(&key).unwrap());
    expect_error(&partner.post(headers, body).await, 401, "INVALID_SIGNATURE");
}
