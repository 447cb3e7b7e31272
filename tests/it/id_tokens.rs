//! ID tokens and userinfo of a sign-in by OpenID Connect: claims, forgeries, and a provider that fails.

use futures_util::future::join_all;
use serde_json::{Value, json};
use vouchsafe_test_harness::{Operator, WAIT_TIMEOUT, eventually, text_of};

use crate::browser::Browser;
use crate::identity_provider::{Forgery, Provider, forge};
use crate::operator_accounts::failed_sign_ins;

/// The page of an identity that the provider did not confirm, with 401.
const NOT_CONFIRMED: &str = "The identity provider did not confirm the sign-in; sign in again.";

#[tokio::test(flavor = "multi_thread")]
async fn invalid_id_token_is_refused() {
    let provider = Provider::start();
    let service = provider.start_service();
    let with = |claim: &str, value: Value| {
        let mut claims = json!({ "email": "jane@example.com", "groups": ["leads"] });
        claims[claim] = value;
        claims
    };
    let valid = json!({ "email": "jane@example.com", "groups": ["leads"] });
    let mut refusals = Vec::new();
    for claims in [
        with("exp", json!(1_700_000_000)),
        with("aud", json!("other")),
        with("aud", json!(["vouchsafe", "other"])),
        with("iss", json!("http://127.0.0.1:1")),
        with("nonce", json!("n")),
        with("nonce", Value::Null),
    ] {
        let mut browser = Browser::of(&service);
        let refused = provider.sign_in(&mut browser, &claims).await;
        refusals.push((claims.to_string(), browser, refused));
    }
    for forgery in [Forgery::AnotherKey, Forgery::NoAlgorithm, Forgery::ClientSecret] {
        let mut browser = Browser::of(&service);
        let sign = |claims: &Value| forge(claims, forgery);
        let callback = provider.authorize_with(&mut browser, &valid, sign).await;
        let refused = browser.open(&callback).await;
        refusals.push((format!("{forgery:?}"), browser, refused));
    }
    let count = refusals.len();
    for (case, mut browser, refused) in refusals {
        let page = text_of(&refused);
        assert_eq!(refused.status, 401, "{case}: {page}");
        assert!(page.contains(NOT_CONFIRMED), "{case}: {page}");
        assert_eq!(browser.open("/account").await.status, 303, "{case}: no session");
    }
    let mut admin = Operator::of(&service);
    let operators = admin.get("/admin/v1/operators").await;
    assert_eq!(operators["data"].as_array().unwrap().len(), 1, "{operators}");
    assert_eq!(failed_sign_ins(&mut admin).await, count);
    let log = service.log();
    assert!(log.contains("identity provider refused a sign-in"), "{log}");
    assert!(
        !log.contains("an-access-token") && !log.contains("code-"),
        "{log}"
    );
    // The same claims, signed by the provider.
    let signed_in = provider.sign_in(&mut Browser::of(&service), &valid).await;
    assert_eq!(signed_in.status, 303, "{}", text_of(&signed_in));
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_may_be_one_string_and_missing_claims_come_from_userinfo() {
    let provider = Provider::start_with_userinfo(&json!({ "sub": "1", "groups": "leads" }));
    let service = provider.start_service();
    let mut browser = Browser::of(&service);
    let jane = json!({ "email": "jane@example.com", "groups": "staff" });
    assert_eq!(provider.sign_in(&mut browser, &jane).await.status, 303);
    let page = browser.open("/account").await;
    let page = text_of(&page);
    assert!(page.contains("<strong>viewer</strong>"), "{page}");
    assert_eq!(provider.requests("/userinfo"), 0, "the ID token has all claims");

    let without_groups = json!({ "email": "jane@example.com" });
    assert_eq!(provider.sign_in(&mut browser, &without_groups).await.status, 303);
    let page = browser.open("/account").await;
    let page = text_of(&page);
    assert!(page.contains("<strong>admin</strong>"), "{page}");
    assert_eq!(provider.requests("/userinfo"), 1, "asked once");

    provider.set_userinfo(&json!({ "sub": "1", "email": "Jane@example.com", "email_verified": true }));
    let without_email = json!({ "email_verified": null, "groups": ["leads"] });
    assert_eq!(provider.sign_in(&mut browser, &without_email).await.status, 303);

    // An address keeps the verification of its source, and another person's userinfo does not count.
    let unverified = json!({ "email": "sam@example.com", "email_verified": false, "groups": ["staff"] });
    assert_eq!(provider.sign_in(&mut browser, &unverified).await.status, 403);
    provider.set_userinfo(&json!({ "sub": "2", "groups": ["leads"] }));
    let refused = provider.sign_in(&mut browser, &without_groups).await;
    assert_eq!(refused.status, 401, "{}", text_of(&refused));
    assert!(text_of(&refused).contains(NOT_CONFIRMED), "{}", text_of(&refused));
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_provider_is_asked_once_for_all_sign_ins() {
    let provider = Provider::start();
    let service = provider.start_service();
    provider.fail(true);
    let sign_ins = (0..4).map(|_| async { Browser::of(&service).open("/sign-in/oidc").await });
    for failed in join_all(sign_ins).await {
        assert_eq!(failed.status, 503, "{}", text_of(&failed));
        let page = text_of(&failed);
        assert!(page.contains("The identity provider is not available"), "{page}");
    }
    assert_eq!(provider.requests("/.well-known/openid-configuration"), 1);
    provider.fail(false);
    eventually("the provider is asked again", WAIT_TIMEOUT, async || {
        let begun = Browser::of(&service).open("/sign-in/oidc").await;
        (begun.status == 303).then_some(())
    })
    .await;
    assert_eq!(failed_sign_ins(&mut Operator::of(&service)).await, 0);
}
