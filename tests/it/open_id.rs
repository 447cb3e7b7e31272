//! Sign-in by OpenID Connect: accounts, their roles and identities, and callbacks.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_domain::clock::{Clock as _, SystemClock};
use vouchsafe_test_harness::{Instance, Operator, expect_error, shared, text_of};

use crate::browser::Browser;
use crate::commands::{run_with, utf8};
use crate::identity_provider::Provider;
use crate::operator_accounts::{add_operator, failed_sign_ins, text};

#[tokio::test(flavor = "multi_thread")]
async fn first_sign_in_creates_the_account_and_each_sets_its_role() {
    let provider = Provider::start();
    let service = provider.start_service();
    let mut admin = Operator::of(&service);
    let mut browser = Browser::of(&service);
    let page = browser.open("/sign-in?next=%2Faccount").await;
    assert!(
        text_of(&page).contains("/sign-in/oidc?next=%2Faccount"),
        "{}",
        text_of(&page)
    );
    let account = "/admin/v1/operators/jane@example.com";
    for (groups, role) in [(json!(["staff"]), "viewer"), (json!(["staff", "leads"]), "admin")] {
        let claims = json!({ "email": "Jane@Example.com", "groups": groups });
        let signed_in = provider.sign_in(&mut browser, &claims).await;
        assert_eq!(
            signed_in.headers["location"],
            "/account?a=b",
            "{}",
            text_of(&signed_in)
        );
        let page = browser.open("/account").await;
        let page = text_of(&page);
        assert!(
            page.contains("<strong>jane@example.com</strong>") && page.contains(role),
            "{page}"
        );
    }
    let trail = admin.audit_entries("subject=jane@example.com").await;
    let seen: Vec<_> = trail
        .iter()
        .map(|entry| (text(entry, "operator"), text(entry, "action")))
        .collect();
    let service_did = |action: &str| ("service".to_owned(), action.to_owned());
    assert_eq!(
        seen,
        [
            service_did("operator.change"),
            service_did("operator_identity.link"),
            service_did("operator.create"),
        ]
    );
    let sessions = admin.get("/admin/v1/sessions?operator=jane@example.com").await;
    assert_eq!(sessions["data"][0]["method"], "oidc");

    admin
        .send_json(Method::PATCH, account, &json!({ "disabled": true }))
        .await;
    let claims = json!({ "email": "jane@example.com", "groups": ["leads"] });
    let disabled = provider.sign_in(&mut browser, &claims).await;
    assert_eq!(
        disabled.status,
        403,
        "a sign-in enables no account: {}",
        text_of(&disabled)
    );
    // Another person with the address of the first one.
    let claims = json!({ "sub": "2", "email": "jane@example.com", "groups": ["leads"] });
    let taken = provider.sign_in(&mut browser, &claims).await;
    assert_eq!(taken.status, 403, "{}", text_of(&taken));
    // An account that an admin has created for the address.
    let new = json!({ "name": "sam@example.com", "role": "viewer" });
    admin.send_json(Method::POST, "/admin/v1/operators", &new).await;
    let claims = json!({ "sub": "3", "email": "sam@example.com" });
    assert_eq!(provider.sign_in(&mut browser, &claims).await.status, 303);
    let page = browser.open("/account").await;
    let page = text_of(&page);
    assert!(
        page.contains("sam@example.com") && page.contains("operator"),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn person_without_role_or_address_is_refused() {
    let provider = Provider::start();
    let service = provider.start_service();
    let leads = json!(["leads"]);
    let cases = [
        (
            "no role",
            json!({ "email": "jane@example.com", "groups": ["others"] }),
        ),
        ("no groups", json!({ "email": "jane@example.com" })),
        (
            "address not verified",
            json!({ "email": "sam@example.com", "email_verified": false, "groups": leads }),
        ),
        (
            "no address",
            json!({ "preferred_username": "admin", "groups": leads }),
        ),
    ];
    let mut admin = Operator::of(&service);
    let count = cases.len();
    for (case, claims) in cases {
        let mut browser = Browser::of(&service);
        let refused = provider.sign_in(&mut browser, &claims).await;
        assert_eq!(refused.status, 403, "{case}: {refused:?}");
        assert_eq!(browser.open("/account").await.status, 303, "{case}");
    }
    let operators = admin.get("/admin/v1/operators").await;
    assert_eq!(
        operators["data"].as_array().unwrap().len(),
        1,
        "no account is created: {operators}"
    );
    assert_eq!(failed_sign_ins(&mut admin).await, count);
    let log = service.log();
    assert!(log.contains("identity has no role"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_sees_and_unlinks_the_identity_of_an_operator() {
    let provider = Provider::start();
    let service = provider.start_service();
    let mut admin = Operator::of(&service);
    let (other, issued) = add_operator(&mut admin, "operator").await;
    let path = |name: &str| format!("/admin/v1/operators/{name}/identities");
    let identities = path("jane@example.com");
    let unknown = admin.call_json(Method::GET, &identities, "").await;
    expect_error(&unknown, 404, "OPERATOR_NOT_FOUND");
    assert_eq!(admin.get(&path(&other)).await["data"], json!([]));

    let jane = json!({ "email": "jane@example.com", "groups": ["staff"] });
    let mut browser = Browser::of(&service);
    assert_eq!(provider.sign_in(&mut browser, &jane).await.status, 303);
    let identity = json!({ "issuer": provider.issuer, "subject": "1" });
    assert_eq!(admin.get(&identities).await["data"], json!([identity]));
    let listed = run_with(
        &service,
        &["operator", "identity", "list", "jane@example.com"],
        None,
    );
    assert!(utf8(&listed.stdout).contains(&provider.issuer), "{listed:?}");
    let mut other = Operator::of(&service).with_token(&text(&issued, "token"));
    for method in [Method::GET, Method::DELETE] {
        let refused = other.call_json(method, &identities, "").await;
        expect_error(&refused, 403, "FORBIDDEN");
    }

    let tokens = "/admin/v1/operators/jane@example.com/tokens";
    let issued = admin.send_json(Method::POST, tokens, &json!({})).await;
    let mut by_token = Operator::of(&service).with_token(&text(&issued, "token"));
    by_token.get("/admin/v1/partners").await;
    let mut by_link = Browser::signed_in(&service, &mut admin, "jane@example.com").await;
    let arguments = ["operator", "identity", "unlink", "jane@example.com"];
    let unlinked = run_with(&service, &arguments, None);
    assert!(unlinked.status.success(), "{unlinked:?}");
    assert_eq!(admin.get(&identities).await["data"], json!([]));
    assert_eq!(
        browser.open("/account").await.status,
        303,
        "its session has ended"
    );
    assert_eq!(by_link.open("/account").await.status, 303);
    let refused = by_token.call_json(Method::GET, "/admin/v1/partners", "").await;
    expect_error(&refused, 401, "INVALID_CREDENTIALS");
    let ended = &admin.get(tokens).await["data"][0];
    assert!(ended["revoked_at"].is_string(), "{ended}");
    let again = admin.call_json(Method::DELETE, &identities, "").await;
    assert_eq!(again.status, 204, "{again:?}");
    let trail = admin.audit_entries("subject=jane@example.com").await;
    let entry = &trail[0];
    assert_eq!(
        (
            &entry["action"],
            &entry["operator"],
            &entry["before"],
            &entry["after"]
        ),
        (
            &json!("operator_identity.unlink"),
            &json!("admin"),
            &identity,
            &Value::Null
        )
    );

    // Another person with the address.
    let successor = json!({ "sub": "2", "email": "jane@example.com", "groups": ["staff"] });
    assert_eq!(provider.sign_in(&mut browser, &successor).await.status, 303);
    assert_eq!(admin.get(&identities).await["data"][0]["subject"], "2");
    let trail = admin.audit_entries("subject=jane@example.com").await;
    assert_eq!(
        (
            &trail[0]["action"],
            &trail[0]["operator"],
            &trail[0]["after"]["subject"]
        ),
        (&json!("operator_identity.link"), &json!("service"), &json!("2"))
    );
}

/// Cookies of a sign-in that no node has begun, with the state of this callback, as anybody can write them:
/// fields, and fields with a wrong signature.
fn forged_cookies(callback: &str) -> [String; 2] {
    let state = callback.split("state=").nth(1).unwrap();
    let at = SystemClock::new().now().unix_timestamp();
    let text = format!("{state}\nnonce\nverifier\n{at}\n/");
    let signed = URL_SAFE_NO_PAD.encode([&[0; 32][..], text.as_bytes()].concat());
    let plain = format!("state={state}&nonce=n&verifier=v&next=%2F&at={at}");
    [signed, plain].map(|value| format!("vouchsafe_sign_in={value}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn provider_is_not_asked_above_the_limit_of_failed_sign_ins() {
    let provider = Provider::start();
    let service = provider.start_service_with(&[("VOUCHSAFE_LIMIT_AUTH", "3/86400")]);
    let jane = json!({ "email": "jane@example.com", "groups": ["staff"] });
    let mut browser = Browser::of(&service);
    let callback = provider.authorize(&mut browser, &jane).await;
    let cookie = browser.cookie.clone();
    let asked = || provider.requests("/token");
    for guess in 0..10 {
        browser.cookie.clone_from(&cookie);
        let guessed = callback.replace("code=code-", &format!("code=guess-{guess}-"));
        let status = browser.open(&guessed).await.status;
        assert_eq!(status, if guess < 3 { 401 } else { 429 }, "{guess}");
    }
    assert_eq!(asked(), 3);
    // A sign-in that succeeds uses up no failed one.
    let service = provider.start_service_with(&[("VOUCHSAFE_LIMIT_AUTH", "1/86400")]);
    for _ in 0..3 {
        let mut browser = Browser::of(&service);
        assert_eq!(provider.sign_in(&mut browser, &jane).await.status, 303);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callback_of_another_browser_or_a_used_code_is_refused() {
    let provider = Provider::start();
    let service = provider.start_service();
    let claims = json!({ "email": "jane@example.com", "groups": ["staff"] });
    let mut browser = Browser::of(&service);
    let callback = provider.authorize(&mut browser, &claims).await;
    let cookie = browser.cookie.clone();
    let forged = forged_cookies(&callback).map(Some);
    for stranger in [None].into_iter().chain(forged) {
        let mut other = Browser::of(&service);
        other.cookie = stranger;
        assert_eq!(other.open(&callback).await.status, 401);
    }
    assert_eq!(provider.requests("/token"), 0, "the provider is not asked");
    // The cookie of a sign-in of one's own does not fit either.
    let mut other = Browser::of(&service);
    provider.authorize(&mut other, &claims).await;
    assert_eq!(other.open(&callback).await.status, 401);

    assert_eq!(browser.open(&callback).await.status, 303);
    browser.cookie = cookie;
    let replayed = browser.open(&callback).await;
    assert_eq!(replayed.status, 401, "{}", text_of(&replayed));
    let denied = browser
        .open("/sign-in/callback?error=access_denied&state=x")
        .await;
    assert_eq!(denied.status, 401);
    assert_eq!(browser.open("/sign-in/callback").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn page_of_another_site_begins_no_sign_in_and_uses_up_no_failed_ones() {
    let provider = Provider::start();
    let service = provider.start_service();
    let mut admin = Operator::of(&service);
    let foreign = [("sec-fetch-site", "cross-site")];
    let mut browser = Browser::of(&service);
    let begun = browser
        .send(Method::GET, "/sign-in/oidc?next=%2Faccount", &foreign, "")
        .await;
    assert_eq!(
        (begun.status.as_u16(), &begun.headers["location"], &browser.cookie),
        (303, &"/sign-in?next=%2Faccount".parse().unwrap(), &None)
    );
    for callback in [
        "/sign-in/callback",
        "/sign-in/callback?code=a&state=b",
        "/sign-in/callback?error=access_denied&state=b",
    ] {
        let refused = browser.send(Method::GET, callback, &foreign, "").await;
        assert_eq!(refused.status, 401, "{callback}: {refused:?}");
    }
    assert_eq!(failed_sign_ins(&mut admin).await, 0);
    assert_eq!(provider.requests("/token"), 0, "the provider is not asked");

    // A code that the browser's own sign-in did not bring is a guess.
    let jane = json!({ "email": "jane@example.com", "groups": ["staff"] });
    let callback = provider.authorize(&mut browser, &jane).await;
    let guess = callback.replace("code=code-", "code=guess-");
    assert_eq!(browser.open(&guess).await.status, 401);
    assert_eq!(failed_sign_ins(&mut admin).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_in_at_the_provider_ends_the_session_that_its_browser_had() {
    let provider = Provider::start();
    let service = provider.start_service();
    let mut admin = Operator::of(&service);
    let (name, _) = add_operator(&mut admin, "viewer").await;
    let mut previous = Browser::signed_in(&service, &mut admin, &name).await;
    let mut browser = Browser::of(&service);
    let jane = json!({ "email": "jane@example.com", "groups": ["staff"] });
    let callback = provider.authorize(&mut browser, &jane).await;
    // A browser sends all cookies of the console.
    let cookies = [&previous.cookie, &browser.cookie].map(|cookie| cookie.clone().unwrap());
    browser.cookie = Some(cookies.join("; "));
    assert_eq!(previous.open("/account").await.status, 200);
    assert_eq!(browser.open(&callback).await.status, 303);
    assert_eq!(previous.open("/account").await.status, 303, "it has ended");
    assert_eq!(browser.open("/account").await.status, 200);
}

#[tokio::test]
async fn unavailable_provider_and_absent_settings_have_pages() {
    let settings = [
        ("VOUCHSAFE_OIDC_ISSUER", "http://127.0.0.1:1"),
        ("VOUCHSAFE_OIDC_CLIENT_ID", "vouchsafe"),
        ("VOUCHSAFE_OIDC_CLIENT_SECRET", "a-secret-of-the-client"),
        ("VOUCHSAFE_OIDC_ROLES", "staff=viewer"),
    ];
    let service = Instance::start_with(&settings);
    let unavailable = Browser::of(&service).open("/sign-in/oidc").await;
    assert_eq!(unavailable.status, 503, "{}", text_of(&unavailable));
    let mut without = Browser::of(shared());
    for path in ["/sign-in/oidc", "/sign-in/callback?code=a&state=b"] {
        assert_eq!(without.open(path).await.status, 404, "{path}");
    }
}
