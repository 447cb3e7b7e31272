//! The token of the settings: what it may not grant, the name it acts under, and what ends with it.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_test_harness::{Instance, Operator, expect_error, expect_success};

use crate::commands::run_with;
use crate::operator_accounts::text;

const TOKEN: &str = "a-token-of-the-settings-of-32-characters";

/// Starts a service with the token, and creates the admin `sam` in its database. Returns the token of `sam`.
fn start(four_eyes: &str) -> (Instance, String) {
    let service = Instance::start_with(&[
        ("VOUCHSAFE_FOUR_EYES", four_eyes),
        ("VOUCHSAFE_OPERATOR_TOKEN", TOKEN),
    ]);
    let arguments = ["operator", "create", "sam", "--admin", "--json"];
    let issued: Value = serde_json::from_slice(&run_with(&service, &arguments, None).stdout).unwrap();
    // A sandbox whose settings have a token stores none in a file.
    std::fs::write(service.data_dir().join("operator-token"), TOKEN).unwrap();
    let token = text(&issued, "token");
    (service, token)
}

#[tokio::test]
async fn token_of_settings_grants_no_access_to_operators() {
    for four_eyes in ["on", "off"] {
        let (service, _) = start(four_eyes);
        let mut settings = Operator::of(&service);
        let hash = json!({ "token_sha256": "ab".repeat(32) });
        for (method, path, body) in [
            (
                Method::POST,
                "/admin/v1/operators",
                json!({ "name": "jo", "role": "viewer" }),
            ),
            (
                Method::PATCH,
                "/admin/v1/operators/sam",
                json!({ "role": "viewer" }),
            ),
            (
                Method::PATCH,
                "/admin/v1/operators/sam",
                json!({ "disabled": false }),
            ),
            (Method::POST, "/admin/v1/operators/sam/tokens", hash.clone()),
            (Method::POST, "/admin/v1/operators/admin/tokens", json!({})),
            (
                Method::POST,
                "/admin/v1/operators/settings-token/tokens",
                json!({}),
            ),
            (Method::POST, "/admin/v1/operators/sam/sign-in-links", json!({})),
        ] {
            let response = settings.call_json(method, path, body.to_string()).await;
            expect_error(&response, 403, "FORBIDDEN");
        }
        // Ending access is no grant.
        let disable = json!({ "disabled": true });
        settings
            .send_json(Method::PATCH, "/admin/v1/operators/sam", &disable)
            .await;
        let audited = settings.audit_entries("subject=sam&action=operator.change").await;
        assert_eq!(audited[0]["operator"], "settings-token");
    }
}

#[tokio::test]
async fn request_of_settings_token_ends_with_the_setting() {
    let (mut service, sam_token) = start("on");
    let mut settings = Operator::of(&service);
    let mut sam = Operator::of(&service).with_token(&sam_token);
    let account = json!({ "name": "A partner", "allowlist": ["127.0.0.0/8"] });
    let partner = settings
        .send_json(Method::POST, "/admin/v1/partners", &account)
        .await;
    let path = format!(
        "/admin/v1/partners/{}/wallets/USD/top-ups",
        text(&partner, "partner_id")
    );
    let mut confirmations = Vec::new();
    for reference in ["first", "second"] {
        let body = json!({ "amount": "5", "reference": reference }).to_string();
        let request = expect_success(&settings.call_json(Method::POST, &path, body).await, 202);
        assert_eq!(request["requested_by"], "settings-token");
        confirmations.push(format!(
            "/admin/v1/requests/{}/confirm",
            text(&request, "request_id")
        ));
    }
    expect_success(&sam.call_json(Method::POST, &confirmations[0], "").await, 201);
    assert_eq!(service.stop(), Some(0));
    let another = (
        "VOUCHSAFE_OPERATOR_TOKEN",
        "another-token-of-the-settings-of-32-characters",
    );
    let four_eyes = ("VOUCHSAFE_FOUR_EYES", "on");
    let mut with_another = Instance::new(service.data_dir(), &[four_eyes, another]);
    with_another.restart();
    let mut sam = Operator::of(&with_another).with_token(&sam_token);
    let refused = sam.call_json(Method::POST, &confirmations[1], "").await;
    expect_error(&refused, 409, "CHANGE_REQUEST_NOT_WAITING");
    assert_eq!(with_another.stop(), Some(0));
    let mut without = Instance::new(service.data_dir(), &[four_eyes]);
    without.restart();
    let mut sam = Operator::of(&without).with_token(&sam_token);
    let refused = sam.call_json(Method::POST, &confirmations[1], "").await;
    expect_error(&refused, 409, "CHANGE_REQUEST_NOT_WAITING");
    let mut settings = Operator::of(&without).with_token(TOKEN);
    let response = settings.call_json(Method::GET, "/admin/v1/partners", "").await;
    expect_error(&response, 401, "INVALID_CREDENTIALS");
}
