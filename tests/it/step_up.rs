//! Step-up: a session that began at the identity provider needs a recent authentication there for changes
//! that could move money.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;
use vouchsafe_domain::clock::{Clock as _, SystemClock};
use vouchsafe_test_harness::{Operator, expect_error, expect_success, text_of};

use crate::browser::{Browser, SAME_ORIGIN};
use crate::identity_provider::Provider;

fn claims(more: &Value) -> Value {
    let mut claims = json!({ "email": "jane@example.com", "groups": ["leads"] });
    claims
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    claims
}

async fn top_up(browser: &mut Browser, path: &str, reference: &str) -> ApiResponse {
    let body = json!({ "amount": "5", "reference": reference });
    browser
        .send_json(Method::POST, path, &[SAME_ORIGIN], &body.to_string())
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn change_that_could_move_money_needs_a_recent_authentication_at_the_provider() {
    let provider = Provider::start();
    let service = provider.start_service_with(&[
        ("VOUCHSAFE_OIDC_ACR_VALUES", "gold, platinum"),
        ("VOUCHSAFE_FOUR_EYES", "USD=1000"),
    ]);
    let mut admin = Operator::of(&service);
    let partner = admin.add_partner("0").await;
    let wallet = format!("/admin/v1/partners/{}/wallets/USD", partner.partner_id);
    let top_ups = format!("{wallet}/top-ups");
    let large = json!({ "amount": "5000", "reference": "large" }).to_string();
    let waiting = admin.call_json(Method::POST, &top_ups, large).await;
    let waiting = expect_success(&waiting, 202);
    let confirm = format!(
        "/admin/v1/requests/{}/confirm",
        waiting["request_id"].as_str().unwrap()
    );
    let mut browser = Browser::of(&service);
    let now = SystemClock::new().now().unix_timestamp();
    for authentication in [
        json!({}),
        json!({ "acr": "gold" }),
        json!({ "auth_time": now }),
        json!({ "auth_time": now, "acr": "silver" }),
        json!({ "auth_time": now - 901, "acr": "gold" }),
        json!({ "auth_time": now + 86_400, "acr": "gold" }),
    ] {
        let signed_in = provider.sign_in(&mut browser, &claims(&authentication)).await;
        assert_eq!(signed_in.status, 303, "{}", text_of(&signed_in));
        let posted = top_up(&mut browser, &top_ups, "refused").await;
        expect_error(&posted, 403, "STEP_UP_REQUIRED");
        let adjustment = json!({ "amount": "-1", "reference": "refused" });
        let adjustments = format!("{wallet}/adjustments");
        let adjusted = browser
            .send_json(
                Method::POST,
                &adjustments,
                &[SAME_ORIGIN],
                &adjustment.to_string(),
            )
            .await;
        expect_error(&adjusted, 403, "STEP_UP_REQUIRED");
        let confirmed = browser
            .send_json(Method::POST, &confirm, &[SAME_ORIGIN], "")
            .await;
        expect_error(&confirmed, 403, "STEP_UP_REQUIRED");
    }
    // What gives access could move money afterwards.
    let account = format!("/admin/v1/partners/{}", partner.partner_id);
    for (method, path, body) in [
        (
            Method::POST,
            "/admin/v1/operators/admin/tokens".to_owned(),
            json!({ "token_sha256": "5e".repeat(32) }),
        ),
        (Method::POST, format!("{account}/credentials"), json!({})),
        (
            Method::PATCH,
            account.clone(),
            json!({ "allowlist": ["0.0.0.0/0"] }),
        ),
        (
            Method::POST,
            "/admin/v1/operators".to_owned(),
            json!({ "name": "mallory", "role": "admin" }),
        ),
        (
            Method::PATCH,
            "/admin/v1/operators/admin".to_owned(),
            json!({ "role": "viewer" }),
        ),
    ] {
        let refused = browser
            .send_json(method, &path, &[SAME_ORIGIN], &body.to_string())
            .await;
        expect_error(&refused, 403, "STEP_UP_REQUIRED");
    }
    // A suspension is urgent.
    let suspended = browser
        .send_json(Method::PATCH, &account, &[SAME_ORIGIN], r#"{"suspended":true}"#)
        .await;
    expect_success(&suspended, 200);
    // The form stays, with the way to the provider.
    let form = format!("/partners/{}/top-up", partner.partner_id);
    let page = browser
        .submit(&form, "currency=USD&amount=5&reference=kept+in+the+page")
        .await;
    assert_eq!(page.status, 403);
    for part in ["/sign-in/oidc?step_up=true&amp;next=/account", "kept in the page"] {
        assert!(text_of(&page).contains(part), "{}", text_of(&page));
    }

    let begun = browser.open("/sign-in/oidc?step_up=true&next=%2Faccount").await;
    let target = begun.headers["location"].to_str().unwrap();
    assert!(
        target.ends_with("&max_age=300&acr_values=gold+platinum"),
        "{target}"
    );
    for (authentication, status) in [
        (json!({ "acr": "gold" }), 403),
        (json!({ "auth_time": now, "acr": "silver" }), 403),
        (json!({ "auth_time": now - 901, "acr": "gold" }), 403),
        (json!({ "auth_time": now * 1_000, "acr": "gold" }), 403),
        (json!({ "auth_time": now, "acr": "platinum" }), 303),
    ] {
        let claims = claims(&authentication);
        let callback = provider.authorize_for_step_up(&mut browser, &claims).await;
        let finished = browser.open(&callback).await;
        assert_eq!(finished.status, status, "{authentication}");
    }
    expect_success(&top_up(&mut browser, &top_ups, "step-up").await, 201);
    let confirmed = browser
        .send_json(Method::POST, &confirm, &[SAME_ORIGIN], "")
        .await;
    expect_success(&confirmed, 201);

    // A one-time link and an API token are not asked.
    let mut linked = Browser::signed_in(&service, &mut admin, "admin").await;
    expect_success(&top_up(&mut linked, &top_ups, "link").await, 201);
    let by_token = json!({ "amount": "5", "reference": "token" }).to_string();
    expect_success(&admin.call_json(Method::POST, &top_ups, by_token).await, 201);
}
