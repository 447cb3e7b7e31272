//! An OpenID provider for tests: people sign in at it without a page.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use vouchsafe_api_client::ApiResponse;
use vouchsafe_domain::clock::{Clock as _, SystemClock};
use vouchsafe_test_harness::{Instance, text_of};

use crate::browser::Browser;

const CLIENT_SECRET: &str = "a-secret-of-the-client";

const ACCESS_TOKEN: &str = "an-access-token";

/// Seed of the provider's key.
const OWN_KEY: u8 = 7;

/// A running provider.
pub(crate) struct Provider {
    pub(crate) issuer: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// ID token and PKCE challenge by code; a code works once.
    codes: HashMap<String, (String, String)>,
    /// Response of the userinfo endpoint, if there is one.
    userinfo: Option<Value>,
    /// Whether every request gets 500.
    is_failing: bool,
    /// Number of requests by path.
    requests: HashMap<String, u32>,
}

/// How an ID token is signed that the provider did not sign as it should.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Forgery {
    AnotherKey,
    NoAlgorithm,
    /// With the secret of the client, which is no secret between client and provider.
    ClientSecret,
}

impl Provider {
    pub(crate) fn start() -> Self {
        Self::with(State::default())
    }

    /// A provider whose userinfo endpoint has these claims.
    pub(crate) fn start_with_userinfo(claims: &Value) -> Self {
        Self::with(State {
            userinfo: Some(claims.clone()),
            ..State::default()
        })
    }

    fn with(state: State) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(state));
        let provider = Self {
            issuer: issuer.clone(),
            state: Arc::clone(&state),
        };
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                respond(&connection.unwrap(), &issuer, &state);
            }
        });
        provider
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn fail(&self, is_failing: bool) {
        self.state().is_failing = is_failing;
    }

    pub(crate) fn set_userinfo(&self, claims: &Value) {
        self.state().userinfo = Some(claims.clone());
    }

    /// The number of requests for a path.
    pub(crate) fn requests(&self, path: &str) -> u32 {
        self.state().requests.get(path).copied().unwrap_or_default()
    }

    /// A service whose operators sign in here.
    pub(crate) fn start_service(&self) -> Instance {
        self.start_service_with(&[])
    }

    /// Same, with further settings.
    pub(crate) fn start_service_with(&self, settings: &[(&str, &str)]) -> Instance {
        let own = [
            ("VOUCHSAFE_OIDC_ISSUER", self.issuer.as_str()),
            ("VOUCHSAFE_OIDC_CLIENT_ID", "vouchsafe"),
            ("VOUCHSAFE_OIDC_CLIENT_SECRET", CLIENT_SECRET),
            (
                "VOUCHSAFE_OIDC_ROLES",
                "staff=viewer,leads=admin,sam@example.com=operator",
            ),
        ];
        Instance::start_with(&[&own, settings].concat())
    }

    /// Begins a sign-in and lets a person with these claims sign in. Returns the path of the callback.
    pub(crate) async fn authorize(&self, browser: &mut Browser, claims: &Value) -> String {
        self.authorize_with(browser, claims, |claims| sign(claims, OWN_KEY))
            .await
    }

    /// Same, for a step-up.
    pub(crate) async fn authorize_for_step_up(&self, browser: &mut Browser, claims: &Value) -> String {
        let begin = "/sign-in/oidc?step_up=true&next=%2Faccount";
        self.authorize_from(browser, begin, claims, |claims| sign(claims, OWN_KEY))
            .await
    }

    /// Same as [`Self::authorize`], with an ID token that `sign` makes of its claims.
    pub(crate) async fn authorize_with(
        &self,
        browser: &mut Browser,
        claims: &Value,
        sign: impl FnOnce(&Value) -> String,
    ) -> String {
        let begin = "/sign-in/oidc?next=%2Faccount%3Fa%3Db";
        self.authorize_from(browser, begin, claims, sign).await
    }

    async fn authorize_from(
        &self,
        browser: &mut Browser,
        begin: &str,
        claims: &Value,
        sign: impl FnOnce(&Value) -> String,
    ) -> String {
        let begun = browser.open(begin).await;
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
        // A claim that is null in `claims` is absent.
        all.as_object_mut().unwrap().retain(|_, claim| !claim.is_null());
        let code = format!("code-{}", query["state"]);
        let grant = (sign(&all), query["code_challenge"].clone());
        self.state().codes.insert(code.clone(), grant);
        let callback = [("code", code.as_str()), ("state", query["state"].as_str())];
        format!(
            "/sign-in/callback?{}",
            serde_urlencoded::to_string(callback).unwrap()
        )
    }

    /// Signs a person with these claims in, from the sign-in page to the session.
    pub(crate) async fn sign_in(&self, browser: &mut Browser, claims: &Value) -> ApiResponse {
        let callback = self.authorize(browser, claims).await;
        browser.open(&callback).await
    }
}

fn respond(connection: &TcpStream, issuer: &str, state: &Mutex<State>) {
    let mut reader = BufReader::new(connection);
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
    let path = head.split(' ').nth(1).unwrap();
    let mut state = state.lock().unwrap();
    *state.requests.entry(path.to_owned()).or_default() += 1;
    let (status, content) = match path {
        _ if state.is_failing => (500, json!({})),
        "/.well-known/openid-configuration" => (200, metadata(issuer, state.userinfo.is_some())),
        "/keys" => (200, json!({ "keys": [public_key(OWN_KEY)] })),
        "/token" => {
            let form: HashMap<String, String> = serde_urlencoded::from_bytes(&body).unwrap();
            let found = state.codes.remove(&form["code"]);
            let found = found.filter(|(_, challenge)| {
                *challenge == URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]))
            });
            match found {
                Some((id_token, _)) => (
                    200,
                    json!({ "access_token": ACCESS_TOKEN, "token_type": "Bearer", "id_token": id_token }),
                ),
                None => (400, json!({ "error": "invalid_grant" })),
            }
        }
        "/userinfo" if lower.contains(&format!("authorization: bearer {ACCESS_TOKEN}")) => {
            (200, state.userinfo.clone().unwrap())
        }
        path => panic!("{path}"),
    };
    let content = content.to_string();
    let head = format!(
        "HTTP/1.1 {status} \r\ncontent-type: application/json\r\ncontent-length: {}",
        content.len()
    );
    drop(write!(
        &mut &*connection,
        "{head}\r\nconnection: close\r\n\r\n{content}"
    ));
}

fn metadata(issuer: &str, has_userinfo: bool) -> Value {
    let mut metadata = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/keys"),
        "response_types_supported": ["code"], "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["EdDSA"], "scopes_supported": ["openid", "email", "groups"],
    });
    if has_userinfo {
        metadata["userinfo_endpoint"] = json!(format!("{issuer}/userinfo"));
    }
    metadata
}

fn signing_key(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

/// The JSON Web Key that verifies the signatures of a key.
fn public_key(seed: u8) -> Value {
    let point = URL_SAFE_NO_PAD.encode(signing_key(seed).public_key());
    json!({ "kty": "OKP", "use": "sig", "crv": "Ed25519", "x": point })
}

/// Header and claims, as they are signed.
fn message(algorithm: &str, claims: &Value) -> String {
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", encode(&json!({ "alg": algorithm })), encode(claims))
}

fn sign(claims: &Value, seed: u8) -> String {
    let message = message("EdDSA", claims);
    let signature = signing_key(seed).sign(message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// An ID token that the provider has not signed.
pub(crate) fn forge(claims: &Value, forgery: Forgery) -> String {
    match forgery {
        Forgery::AnotherKey => sign(claims, OWN_KEY + 1),
        Forgery::NoAlgorithm => format!("{}.", message("none", claims)),
        Forgery::ClientSecret => {
            let message = message("HS256", claims);
            let key = hmac::Key::new(hmac::HMAC_SHA256, CLIENT_SECRET.as_bytes());
            let signature = hmac::sign(&key, message.as_bytes());
            format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
        }
    }
}
