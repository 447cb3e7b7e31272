//! Sign-in by OpenID Connect at a provider of this test: accounts and roles, and every refusal.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hyper::Method;
use openidconnect::PrivateSigningKey as _;
use openidconnect::core::{CoreEdDsaPrivateSigningKey, CoreJwsSigningAlgorithm};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use vouchsafe_api_client::ApiResponse;
use vouchsafe_domain::clock::{Clock as _, SystemClock};
use vouchsafe_test_harness::{Instance, Operator, shared, text_of};

use crate::browser::Browser;
use crate::operator_accounts::text;

/// An identity provider: people sign in at it without a page.
struct Provider {
    issuer: String,
    /// Claims of the ID token and PKCE challenge by code; a code works once.
    codes: Arc<Mutex<HashMap<String, (Value, String)>>>,
}

impl Provider {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let provider = Self {
            issuer,
            codes: Arc::default(),
        };
        let (issuer, codes) = (provider.issuer.clone(), Arc::clone(&provider.codes));
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                respond(connection.unwrap(), &issuer, &codes);
            }
        });
        provider
    }

    /// A service whose operators sign in here.
    fn start_service(&self) -> Instance {
        Instance::start_with(&[
            ("VOUCHSAFE_OIDC_ISSUER", &self.issuer),
            ("VOUCHSAFE_OIDC_CLIENT_ID", "vouchsafe"),
            ("VOUCHSAFE_OIDC_CLIENT_SECRET", "a-secret-of-the-client"),
            (
                "VOUCHSAFE_OIDC_ROLES",
                "staff=viewer,leads=admin,sam@example.com=operator",
            ),
        ])
    }

    /// Begins a sign-in and lets a person with these claims sign in. Returns the path of the callback.
    async fn authorize(&self, browser: &mut Browser, claims: &Value) -> String {
        let begun = browser.open("/sign-in/oidc?next=%2Faccount%3Fa%3Db").await;
        assert_eq!(begun.status, 303, "{}", text_of(&begun));
        let target = begun.headers["location"].to_str().unwrap();
        let (endpoint, query) = target.split_once('?').unwrap();
        assert_eq!(endpoint, format!("{}/authorize", self.issuer));
        let query: HashMap<String, String> = serde_urlencoded::from_str(query).unwrap();
        assert_eq!(
            (&*query["response_type"], &*query["code_challenge_method"]),
            ("code", "S256")
        );
        assert_eq!(query["scope"], "openid email profile groups");
        let now = SystemClock::new().now().unix_timestamp();
        let mut all = json!({
            "iss": self.issuer, "aud": "vouchsafe", "iat": now, "exp": now + 300, "nonce": query["nonce"],
            "sub": "1", "email_verified": true,
        });
        all.as_object_mut()
            .unwrap()
            .extend(claims.as_object().unwrap().clone());
        let code = format!("code-{}", query["state"]);
        let challenge = query["code_challenge"].clone();
        self.codes.lock().unwrap().insert(code.clone(), (all, challenge));
        let callback = [("code", code.as_str()), ("state", query["state"].as_str())];
        format!(
            "/sign-in/callback?{}",
            serde_urlencoded::to_string(callback).unwrap()
        )
    }

    /// Signs a person with these claims in, from the sign-in page to the session.
    async fn sign_in(&self, browser: &mut Browser, claims: &Value) -> ApiResponse {
        let callback = self.authorize(browser, claims).await;
        browser.open(&callback).await
    }
}

fn respond(connection: TcpStream, issuer: &str, codes: &Mutex<HashMap<String, (Value, String)>>) {
    let mut reader = BufReader::new(&connection);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap() == 0 {
            return;
        }
    }
    let lower = head.to_lowercase();
    let length = lower.split("content-length: ").nth(1);
    let length = length.map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let (status, content) = match head.split(' ').nth(1).unwrap() {
        "/.well-known/openid-configuration" => (
            200,
            json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/authorize"),
                "token_endpoint": format!("{issuer}/token"),
                "jwks_uri": format!("{issuer}/keys"),
                "response_types_supported": ["code"], "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["EdDSA"], "scopes_supported": ["openid", "email", "groups"],
            }),
        ),
        "/keys" => (200, json!({ "keys": [signing_key().as_verification_key()] })),
        "/token" => {
            let form: HashMap<String, String> = serde_urlencoded::from_bytes(&body).unwrap();
            let found = codes.lock().unwrap().remove(&form["code"]);
            let found = found.filter(|(_, challenge)| {
                *challenge == URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]))
            });
            match found {
                Some((claims, _)) => (
                    200,
                    json!({
                        "access_token": "an-access-token", "token_type": "Bearer", "id_token": sign(&claims),
                    }),
                ),
                None => (400, json!({ "error": "invalid_grant" })),
            }
        }
        path => panic!("{path}"),
    };
    let content = content.to_string();
    let head = format!(
        "HTTP/1.1 {status} \r\ncontent-type: application/json\r\ncontent-length: {}",
        content.len()
    );
    drop(write!(
        &connection,
        "{head}\r\nconnection: close\r\n\r\n{content}"
    ));
}

fn signing_key() -> CoreEdDsaPrivateSigningKey {
    // PKCS #8 of an Ed25519 key.
    let pkcs8 = [
        &hex::decode("302e020100300506032b657004220420").unwrap()[..],
        &[7; 32],
    ]
    .concat();
    let label = ["PRIVATE", "KEY"].join(" ");
    let pem = format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        STANDARD.encode(pkcs8)
    );
    CoreEdDsaPrivateSigningKey::from_ed25519_pem(&pem, None).unwrap()
}

fn sign(claims: &Value) -> String {
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", encode(&json!({ "alg": "EdDSA" })), encode(claims));
    let signature = signing_key().sign(&CoreJwsSigningAlgorithm::EdDsa, message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.unwrap()))
}

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
        [service_did("operator.change"), service_did("operator.create")]
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
async fn person_without_role_or_address_and_invalid_token_are_refused() {
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
        (
            "expired",
            json!({ "email": "jane@example.com", "groups": leads, "exp": 1_700_000_000 }),
        ),
        (
            "another audience",
            json!({ "email": "jane@example.com", "groups": leads, "aud": "other" }),
        ),
        (
            "another issuer",
            json!({ "email": "jane@example.com", "groups": leads, "iss": "http://127.0.0.1:1" }),
        ),
        (
            "another nonce",
            json!({ "email": "jane@example.com", "groups": leads, "nonce": "n" }),
        ),
    ];
    let mut admin = Operator::of(&service);
    let count = cases.len();
    for (case, claims) in cases {
        let mut browser = Browser::of(&service);
        let refused = provider.sign_in(&mut browser, &claims).await;
        assert!(
            matches!(refused.status.as_u16(), 401 | 403),
            "{case}: {refused:?}"
        );
        assert_eq!(browser.open("/account").await.status, 303, "{case}");
    }
    let operators = admin.get("/admin/v1/operators").await;
    assert_eq!(
        operators["data"].as_array().unwrap().len(),
        1,
        "no account is created: {operators}"
    );
    let metrics = admin.call(Method::GET, "/metrics", "text/plain", "").await;
    let metrics = text_of(&metrics);
    let counted = format!("vouchsafe_operator_sign_in_failures_total {count}\n");
    assert!(metrics.contains(&counted), "{metrics}");
    let log = service.log();
    assert!(log.contains("identity has no role"), "{log}");
    assert!(
        !log.contains("an-access-token") && !log.contains("code-"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn callback_of_another_browser_or_a_used_code_is_refused() {
    let provider = Provider::start();
    let service = provider.start_service();
    let claims = json!({ "email": "jane@example.com", "groups": ["staff"] });
    let mut browser = Browser::of(&service);
    let callback = provider.authorize(&mut browser, &claims).await;
    let cookie = browser.cookie.clone();
    for stranger in [
        None,
        Some("vouchsafe_sign_in=state=a&nonce=b&verifier=c&next=%2F&at=1".to_owned()),
    ] {
        let mut other = Browser::of(&service);
        other.cookie = stranger;
        assert_eq!(other.open(&callback).await.status, 401);
    }
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
