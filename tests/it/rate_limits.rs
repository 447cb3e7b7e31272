//! Rate limits (contract §8): quotas, headers and rejected requests.

use hyper::Method;
use hyper::header::{CONTENT_LENGTH, HeaderValue};
use serde_json::json;
use vouchsafe_api_client::ApiResponse;
use vouchsafe_api_client::signer::SIGNATURE;

use crate::request_bodies::{ORDERS, with_header};
use vouchsafe_test_harness::raw_http::{exchange, request_head};
use vouchsafe_test_harness::{
    Operator, Partner, expect_error, expect_success, order_body, shared, text_of, unique,
};

/// Longer than any test, so that no quota is replenished. Seconds.
const WINDOW_S: u32 = 86_400;

/// Creates a partner with 1,000 USD and these quotas.
async fn add_partner_with_quotas(operator: &mut Operator, quotas: &[(&str, u32)]) -> Partner {
    let partner = operator.add_partner("1000").await;
    set_quotas(operator, &partner, quotas).await;
    partner
}

async fn set_quotas(operator: &mut Operator, partner: &Partner, quotas: &[(&str, u32)]) {
    let limits: serde_json::Map<_, _> = quotas
        .iter()
        .map(|(class, quota)| {
            (
                (*class).to_owned(),
                json!({ "quota": quota, "window_s": WINDOW_S }),
            )
        })
        .collect();
    operator
        .patch_partner(partner, &json!({ "limits": limits }))
        .await;
}

/// Returns class, quota and remaining requests from the response headers.
fn rate_limit_of(response: &ApiResponse) -> (String, u32, u32) {
    let policy = response.header("ratelimit-policy").unwrap_or_default();
    let (class, limit) = policy.split_once(";q=").unwrap_or_else(|| panic!("{response:?}"));
    let (quota, window_s) = limit.split_once(";w=").unwrap();
    let header = response.header("ratelimit").unwrap();
    let (same_class, left) = header.split_once(";r=").unwrap();
    let (remaining, more_in_s) = left.split_once(";t=").unwrap();
    assert_eq!((class, window_s), (same_class, "86400"), "{policy} {header}");
    assert!((1..=WINDOW_S).contains(&more_in_s.parse().unwrap()), "{header}");
    let class = class.trim_matches('"').to_owned();
    (class, quota.parse().unwrap(), remaining.parse().unwrap())
}

fn assert_rate_limit(response: &ApiResponse, class: &str, quota: u32, remaining: u32) {
    assert_eq!(
        rate_limit_of(response),
        (class.to_owned(), quota, remaining),
        "{}",
        text_of(response)
    );
}

/// Asserts a 429 with a correct `Retry-After`.
fn assert_exhausted(response: &ApiResponse, class: &str, quota: u32) {
    let error = expect_error(response, 429, "RATE_LIMIT_EXCEEDED");
    assert_eq!(error["retryable"], true);
    assert_rate_limit(response, class, quota, 0);
    let wait_s: u32 = response.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=WINDOW_S).contains(&wait_s), "{wait_s}");
    assert!(
        response
            .header("ratelimit")
            .unwrap()
            .ends_with(&format!(";t={wait_s}"))
    );
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("{quota} requests of class {class}")),
        "{message}"
    );
}

#[tokio::test]
async fn each_class_has_own_quota_and_reports_remaining() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(9).await;
    let quotas = [("orders", 4), ("general", 4), ("vouchers", 3), ("auth", 2)];
    let mut partner = add_partner_with_quotas(&mut operator, &quotas).await;
    let order = partner.order(&sale, 1).await;
    assert_rate_limit(&order, "orders", 4, 3);
    let path = |suffix: &str| {
        let body = expect_success(&order, 201);
        format!("/orders/{}{suffix}", body["order_id"].as_str().unwrap())
    };
    // Requests rejected for other reasons count as well.
    let key = unique("key");
    for (body, status, left) in [
        ("{", 400, 2),
        ("{}", 422, 1),
        (
            r#"{"items":[{"product_id":"none","denomination":1,"quantity":1}]}"#,
            404,
            0,
        ),
    ] {
        let response = partner.send_text(&key, body).await;
        assert_eq!(response.status.as_u16(), status, "{}", text_of(&response));
        assert_rate_limit(&response, "orders", 4, left);
    }
    assert_exhausted(&partner.order(&sale, 1).await, "orders", 4);

    for (path, left) in [
        (path(""), 3),
        ("/orders/ord_0".to_owned(), 2),
        ("/wallets".to_owned(), 1),
        ("/products?limit=0".to_owned(), 0),
    ] {
        assert_rate_limit(&partner.get(&path).await, "general", 4, left);
    }
    for path in [
        path(""),
        "/categories".to_owned(),
        "/products/x".to_owned(),
        "/transactions".to_owned(),
    ] {
        assert_exhausted(&partner.get(&path).await, "general", 4);
    }

    let codes = path("/vouchers");
    for (path, left) in [(codes.as_str(), 2), ("/orders/ord_0/vouchers", 1), (&codes, 0)] {
        assert_rate_limit(
            &partner.send_signed(Method::GET, path, "").await,
            "vouchers",
            3,
            left,
        );
    }
    assert_exhausted(&partner.send_signed(Method::GET, &codes, "").await, "vouchers", 3);

    for left in [1, 0] {
        let response = partner
            .send_signed(Method::POST, "/credentials/rotate", r#"{"overlap_seconds":-1}"#)
            .await;
        expect_error(&response, 422, "VALIDATION_FAILED");
        assert_rate_limit(&response, "auth", 2, left);
    }
    let response = partner
        .send_signed(Method::POST, "/credentials/rotate", "{}")
        .await;
    assert_exhausted(&response, "auth", 2);
}

#[tokio::test]
async fn order_beyond_quota_of_100_is_limited() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let mut partner = operator.add_partner("0").await;
    let limits = json!({ "limits": { "orders": { "quota": 100, "window_s": 3600 } } });
    operator.patch_partner(&partner, &limits).await;
    for left in (0..100).rev() {
        let response = partner.order(&sale, 1).await;
        let expected = format!(r#""orders";r={left};t="#);
        assert_ne!(response.status, 429);
        assert!(
            response.header("ratelimit").unwrap().starts_with(&expected),
            "{response:?}"
        );
        assert_eq!(
            response.header("ratelimit-policy"),
            Some(r#""orders";q=100;w=3600"#)
        );
    }
    expect_error(&partner.order(&sale, 1).await, 429, "RATE_LIMIT_EXCEEDED");
}

#[tokio::test]
async fn rate_limited_request_executes_nothing_and_leaves_key_unused() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(3).await;
    let mut partner = add_partner_with_quotas(&mut operator, &[("orders", 1)]).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let key = unique("key");
    for _ in 0..3 {
        assert_exhausted(&partner.order_with_key(&key, &sale, 1).await, "orders", 1);
    }
    assert_eq!(partner.balance("USD").await, "975.00");
    // Rate-limited requests do not count: raising the quota by one admits one.
    set_quotas(&mut operator, &partner, &[("orders", 2)]).await;
    let response = partner.order_with_key(&key, &sale, 2).await;
    expect_success(&response, 201);
    assert_eq!(response.header("idempotent-replayed"), None);
    assert_rate_limit(&response, "orders", 2, 0);
    assert_eq!(partner.balance("USD").await, "925.00");
}

#[tokio::test]
async fn changed_limit_applies_to_next_request_and_keeps_count() {
    let mut operator = Operator::of(shared());
    let mut partner = add_partner_with_quotas(&mut operator, &[("general", 5)]).await;
    for left in [4, 3, 2] {
        assert_rate_limit(&partner.get("/wallets").await, "general", 5, left);
    }
    for (quota, left) in [(10, 6), (6, 1), (6, 0)] {
        set_quotas(&mut operator, &partner, &[("general", quota)]).await;
        assert_rate_limit(&partner.get("/wallets").await, "general", quota, left);
    }
    for quota in [6, 2, 1] {
        set_quotas(&mut operator, &partner, &[("general", quota)]).await;
        assert_exhausted(&partner.get("/wallets").await, "general", quota);
    }
    // `null` resets the class to the configured default.
    operator
        .patch_partner(&partner, &json!({ "limits": { "general": null } }))
        .await;
    let response = partner.get("/wallets").await;
    assert_eq!(
        response.header("ratelimit-policy"),
        Some(r#""general";q=1000000;w=60"#)
    );
}

#[tokio::test]
async fn credentials_of_partner_have_separate_quotas() {
    let mut operator = Operator::of(shared());
    let mut partner = add_partner_with_quotas(&mut operator, &[("general", 1)]).await;
    let path = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    let issued = operator.send_json(Method::POST, &path, &json!({})).await;
    let mut other = partner.with_credential(&issued);
    for one in [&mut partner, &mut other] {
        assert_rate_limit(&one.get("/wallets").await, "general", 1, 0);
        assert_exhausted(&one.get("/wallets").await, "general", 1);
    }
}

#[tokio::test]
async fn unauthenticated_request_consumes_no_quota() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = add_partner_with_quotas(&mut operator, &[("orders", 1), ("general", 1)]).await;
    let body = order_body(&sale, 1).to_string();
    for _ in 0..3 {
        let mut headers = partner.headers(ORDERS, body.as_bytes());
        headers.insert(SIGNATURE, HeaderValue::from_static("t=1,v1=00"));
        let response = partner.post(headers, body.clone()).await;
        expect_error(&response, 401, "INVALID_SIGNATURE");
        let mut headers = partner.headers(ORDERS, body.as_bytes());
        headers.insert("x-api-secret", HeaderValue::from_static("wrong"));
        let response = partner.post(headers, body.clone()).await;
        expect_error(&response, 401, "INVALID_CREDENTIALS");
        assert_eq!(
            (response.header("ratelimit"), response.header("ratelimit-policy")),
            (None, None)
        );
    }
    assert_rate_limit(&partner.order(&sale, 1).await, "orders", 1, 0);
    assert_rate_limit(&partner.get("/wallets").await, "general", 1, 0);
}

#[tokio::test]
async fn exhausted_quota_is_reported_before_body_is_read() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = add_partner_with_quotas(&mut operator, &[("orders", 1)]).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    // The announced body never arrives: a service that waits for it would return 408.
    let headers = with_header(partner.headers(ORDERS, b"{}"), CONTENT_LENGTH, "2");
    let response = exchange(
        shared().http_address(),
        &request_head("POST /api/v1/orders", &headers),
    )
    .await;
    assert_exhausted(&response, "orders", 1);
}

#[tokio::test]
async fn concurrent_requests_pass_only_within_quota() {
    let mut operator = Operator::of(shared());
    let partner = add_partner_with_quotas(&mut operator, &[("general", 10)]).await;
    let calls = (0..40).map(|_| {
        let mut partner = partner.reconnect();
        async move { partner.get("/wallets").await.status.as_u16() }
    });
    let statuses = futures_util::future::join_all(calls).await;
    let count = |status: u16| statuses.iter().filter(|found| **found == status).count();
    assert_eq!((count(200), count(429)), (10, 30), "{statuses:?}");
}

#[tokio::test]
async fn rate_limited_requests_are_counted_in_metrics() {
    let service = shared();
    let mut operator = Operator::of(service);
    let mut partner = add_partner_with_quotas(&mut operator, &[("vouchers", 1)]).await;
    for _ in 0..2 {
        partner.get_codes("ord_0").await;
    }
    let mut headers = partner.headers(ORDERS, b"{}");
    headers.insert("x-timestamp", HeaderValue::from_static("1"));
    expect_error(&partner.post(headers, "{}").await, 401, "TIMESTAMP_OUT_OF_RANGE");
    let response = operator.call(Method::GET, "/metrics", "text/plain", "").await;
    for metric in [
        r#"vouchsafe_rate_limited_requests_total{class="vouchers"} "#,
        r#"vouchsafe_authentication_failures_total{code="TIMESTAMP_OUT_OF_RANGE"} "#,
    ] {
        assert!(
            text_of(&response).contains(metric),
            "{metric}: {}",
            text_of(&response)
        );
    }
}
