//! Tokens of operators: those that an operator has generated, and wrong ones.

use hyper::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use vouchsafe_test_harness::{Instance, Operator, expect_error, shared};

use crate::commands::utf8;
use crate::operator_accounts::{add_operator, text};

#[tokio::test]
async fn token_that_its_operator_generated_is_issued_once_by_its_hash() {
    let service = shared();
    let mut admin = Operator::of(service);
    let (name, _) = add_operator(&mut admin, "viewer").await;
    let token = format!("vso_{}", hex::encode(Sha256::digest(&name)));
    let path = format!("/admin/v1/operators/{name}/tokens");
    let body = json!({ "token_sha256": hex::encode(Sha256::digest(&token)) });
    let issued = admin.send_json(Method::POST, &path, &body).await;
    assert_eq!(issued["token"], Value::Null);
    Operator::of(service)
        .with_token(&token)
        .get("/admin/v1/partners?limit=1")
        .await;
    for invalid in [
        body,
        json!({ "token_sha256": "AB".repeat(32) }),
        json!({ "token_sha256": "" }),
    ] {
        let response = admin.call_json(Method::POST, &path, invalid.to_string()).await;
        expect_error(&response, 422, "VALIDATION_FAILED");
    }
}

#[tokio::test]
async fn wrong_tokens_are_limited_per_address_and_lock_out_nobody() {
    let service = Instance::start_with(&[("VOUCHSAFE_LIMIT_AUTH", "3/86400")]);
    let mut admin = Operator::of(&service);
    let (_, issued) = add_operator(&mut admin, "viewer").await;
    let token = text(&issued, "token");
    let wrong = format!("vso_{}", "7".repeat(64));
    for presented in [wrong.as_str(), "guess", wrong.as_str()] {
        let mut stranger = Operator::of(&service).with_token(presented);
        let response = stranger.call_json(Method::GET, "/admin/v1/partners", "").await;
        expect_error(&response, 401, "INVALID_CREDENTIALS");
    }
    let mut stranger = Operator::of(&service).with_token(&wrong);
    let response = stranger.call_json(Method::GET, "/admin/v1/partners", "").await;
    expect_error(&response, 429, "RATE_LIMIT_EXCEEDED");
    assert!(response.headers.contains_key("retry-after"), "{response:?}");
    let without = admin
        .call_without_token(Method::GET, "/admin/v1/partners", &[])
        .await;
    expect_error(&without, 401, "INVALID_CREDENTIALS");
    Operator::of(&service)
        .with_token(&token)
        .get("/admin/v1/partners")
        .await;
    let metrics = admin.call(Method::GET, "/metrics", "text/plain", "").await;
    let metrics = utf8(&metrics.body);
    assert!(
        metrics.contains("vouchsafe_security_events_total{reason=\"operator_token\"} 4\n"),
        "{metrics}"
    );
    let log = service.log();
    let failures = log.matches("security event").count();
    assert_eq!(failures, 3, "{log}");
    assert!(log.contains("127.0.0.1") && !log.contains(&wrong), "{log}");
}
