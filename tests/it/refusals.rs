//! Refused requests: found in the log by their trace id, or counted.

use hyper::Method;
use serde_json::json;
use vouchsafe_api_client::ApiResponse;

use vouchsafe_test_harness::{
    Instance, Operator, WAIT_TIMEOUT, expect_error, expect_stored_error, order_body, text_of, unique,
    wait_until,
};

/// The log line of a response's trace id, with the default format and level.
fn line_of(service: &Instance, response: &ApiResponse) -> Option<String> {
    let trace = response.header("x-trace-id").unwrap();
    let log = service.log();
    log.lines().find(|line| line.contains(trace)).map(str::to_owned)
}

/// Waits for the line of a refused request.
fn assert_logged(service: &Instance, response: &ApiResponse, expected: &[&str]) {
    let line = wait_until("the line of a refusal", WAIT_TIMEOUT, || {
        line_of(service, response)
    });
    for text in ["INFO", "request refused"].iter().chain(expected) {
        assert!(line.contains(text), "{text} is not in {line}");
    }
}

#[tokio::test]
async fn refused_request_is_found_by_its_trace_id() {
    let service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("10").await;
    let orders = r#"http.method="POST" http.route="/api/v1/orders""#;

    let (key, body) = (unique("key"), order_body(&sale, 1));
    let partner_id = partner.partner_id.clone();
    let poor = partner.send(&key, &body).await;
    expect_error(&poor, 402, "INSUFFICIENT_FUNDS");
    let repeated = partner.send(&key, &body).await;
    expect_stored_error(&repeated, 402, "INSUFFICIENT_FUNDS");
    for response in [poor, repeated] {
        let expected = [orders, "INSUFFICIENT_FUNDS", "http.status=402", &partner_id];
        assert_logged(&service, &response, &expected);
    }
    let invalid = partner.send(&unique("key"), &json!({})).await;
    expect_error(&invalid, 422, "VALIDATION_FAILED");
    assert_logged(&service, &invalid, &[orders, "VALIDATION_FAILED", &partner_id]);
    let path = "/orders/ord_00000000000000000000000000000000";
    let absent = partner.get(path).await;
    expect_error(&absent, 404, "ORDER_NOT_FOUND");
    let route = r#"http.route="/api/v1/orders/{order_id}""#;
    assert_logged(&service, &absent, &[route, "ORDER_NOT_FOUND", &partner_id]);
    let anonymous = operator
        .call_without_token(Method::GET, "/admin/v1/stock", &[])
        .await;
    expect_error(&anonymous, 401, "INVALID_CREDENTIALS");
    assert_logged(
        &service,
        &anonymous,
        &[r#"http.route="/admin/v1/stock""#, "INVALID_CREDENTIALS"],
    );
    assert!(!service.log().contains(&key));
}

#[tokio::test]
async fn repeated_refusals_are_logged_or_counted_in_the_log() {
    const REFUSALS: usize = 60;
    let service = Instance::start_with(&[("VOUCHSAFE_LOG_FORMAT", "json")]);
    let mut operator = Operator::of(&service);
    let mut partner = operator.add_partner("10").await;
    for _ in 0..REFUSALS {
        expect_error(&partner.get("/payouts/x").await, 404, "PAYOUT_NOT_FOUND");
    }
    let count_refusals = |line: serde_json::Value| {
        assert_eq!(line["partner.id"], json!(partner.partner_id), "{line}");
        match line["message"].as_str() {
            Some("request refused") => 1,
            _ => line["suppressed"].as_u64().unwrap(),
        }
    };
    wait_until("every refusal to be told", WAIT_TIMEOUT, || {
        let log = service.log();
        let lines = log.lines().filter(|line| line.contains("PAYOUT_NOT_FOUND"));
        let told: u64 = lines
            .map(|line| count_refusals(serde_json::from_str(line).unwrap()))
            .sum();
        (told == REFUSALS as u64).then_some(())
    });
}

#[tokio::test]
async fn rate_limited_request_is_counted_and_not_logged() {
    let service = Instance::start();
    let mut operator = Operator::of(&service);
    let mut partner = operator.add_partner("10").await;
    let limits = json!({ "limits": { "general": { "quota": 1, "window_s": 3600 } } });
    operator.patch_partner(&partner, &limits).await;
    assert_eq!(partner.get("/wallets").await.status, 200);
    let limited = partner.get("/wallets").await;
    expect_error(&limited, 429, "RATE_LIMIT_EXCEEDED");
    let metrics = operator.call(Method::GET, "/metrics", "text/plain", "").await;
    let counted = r#"vouchsafe_http_requests_refused_total{code="RATE_LIMIT_EXCEEDED",class="general"} 1"#;
    let metrics = text_of(&metrics);
    assert!(metrics.contains(counted), "{metrics}");
    // A later refusal is in the log, so the earlier one would be, too.
    let refused = operator
        .call_without_token(Method::GET, "/admin/v1/stock", &[])
        .await;
    assert_logged(&service, &refused, &["INVALID_CREDENTIALS"]);
    assert_eq!(line_of(&service, &limited), None);
}
