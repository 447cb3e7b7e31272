//! Request signatures (contract §2): accepted variants, tampering, timestamps.

use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use vouchsafe_api_client::ApiResponse;
use vouchsafe_api_client::partner::unix_seconds;
use vouchsafe_api_client::signer::{API_KEY, API_SECRET, Credentials, SIGNATURE, TIMESTAMP};

use vouchsafe_test_harness::{
    Instance, Operator, Partner, Sale, expect_error, expect_success, order_body, shared,
};

const ORDERS: &str = "/api/v1/orders";

/// Changes a valid request before it is sent.
type RequestChange = fn(&mut SignedRequest<'_>);

/// A validly signed request to be changed.
struct SignedRequest<'a> {
    headers: HeaderMap,
    body: String,
    credentials: &'a Credentials,
}

impl SignedRequest<'_> {
    fn set(&mut self, name: HeaderName, value: &str) {
        self.headers.insert(name, HeaderValue::from_str(value).unwrap());
    }

    fn duplicate(&mut self, name: HeaderName) {
        let value = self.headers[&name].clone();
        self.headers.append(name, value);
    }

    fn value(&self, name: &HeaderName) -> String {
        self.headers[name].to_str().unwrap().to_owned()
    }

    /// Signs again with this timestamp in both headers.
    fn sign_at(&mut self, timestamp: &str) {
        let v1 = self
            .credentials
            .signature_hex(timestamp, "POST", ORDERS, self.body.as_bytes());
        self.set(TIMESTAMP, timestamp);
        self.set(SIGNATURE, &format!("t={timestamp},v1={v1}"));
    }

    /// Signs again with this method, path and body in the message.
    fn sign_message(&mut self, method: &str, path: &str, body: &str) {
        let timestamp = unix_seconds().to_string();
        let v1 = self
            .credentials
            .signature_hex(&timestamp, method, path, body.as_bytes());
        self.set(TIMESTAMP, &timestamp);
        self.set(SIGNATURE, &format!("t={timestamp},v1={v1}"));
    }
}

/// Orders one voucher with a changed request.
async fn post_changed(partner: &mut Partner, sale: &Sale, change: RequestChange) -> ApiResponse {
    let body = order_body(sale, 1).to_string();
    let credentials = partner.client.credentials().clone();
    let headers = partner.headers(ORDERS, body.as_bytes());
    let mut draft = SignedRequest {
        headers,
        body,
        credentials: &credentials,
    };
    change(&mut draft);
    partner.post(draft.headers, draft.body).await
}

const ACCEPTED: [(&str, RequestChange); 5] = [
    ("unchanged", |_| {}),
    ("signed without the prefix", |draft| {
        draft.sign_message("POST", "/orders", &draft.body.clone())
    }),
    ("space around a value, which HTTP strips", |draft| {
        let time = draft.value(&TIMESTAMP);
        draft.set(TIMESTAMP, &format!("  {time} "));
    }),
    ("with a charset", |draft| {
        draft.set(hyper::header::CONTENT_TYPE, "application/json; charset=utf-8")
    }),
    ("without a content type", |draft| {
        drop(draft.headers.remove(hyper::header::CONTENT_TYPE))
    }),
];

/// Malformed and altered signatures are cases of the unit tests of `vouchsafe_security::signature`.
const INVALID_SIGNATURE: [(&str, RequestChange); 4] = [
    ("none", |draft| drop(draft.headers.remove(SIGNATURE))),
    ("twice", |draft| draft.duplicate(SIGNATURE)),
    ("the body altered", |draft| {
        draft.body = draft.body.replace(r#""quantity":1"#, r#""quantity":2"#)
    }),
    ("the prefix signed twice", |draft| {
        draft.sign_message("POST", "/api/v1/api/v1/orders", &draft.body.clone())
    }),
];

const TIMESTAMP_OUT_OF_RANGE: [(&str, RequestChange); 3] = [
    ("none", |draft| drop(draft.headers.remove(TIMESTAMP))),
    ("twice", |draft| draft.duplicate(TIMESTAMP)),
    ("310 s late", |draft| {
        draft.sign_at(&(unix_seconds() - 310).to_string())
    }),
];

const INVALID_CREDENTIALS: [(&str, RequestChange); 4] = [
    ("the key twice", |draft| draft.duplicate(API_KEY)),
    ("the secret twice", |draft| draft.duplicate(API_SECRET)),
    ("a wrong secret", |draft| draft.set(API_SECRET, "wrong")),
    ("an unknown key", |draft| draft.set(API_KEY, "vs_sandbox_unknown")),
];

#[tokio::test]
async fn valid_signature_variants_are_accepted() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(ACCEPTED.len()).await;
    let mut partner = operator.add_partner("1000").await;
    for (name, change) in ACCEPTED {
        let response = post_changed(&mut partner, &sale, change).await;
        assert_eq!(response.status, 201, "{name}: {:?}", response.body);
        expect_success(&response, 201);
    }
}

#[tokio::test]
async fn invalid_signature_is_rejected_without_effect() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(50).await;
    let mut partner = operator.add_partner("1000").await;
    let cases = [("INVALID_SIGNATURE", &INVALID_SIGNATURE[..])]
        .into_iter()
        .chain([("TIMESTAMP_OUT_OF_RANGE", &TIMESTAMP_OUT_OF_RANGE[..])])
        .chain([("INVALID_CREDENTIALS", &INVALID_CREDENTIALS[..])]);
    for (code, (name, change)) in cases.flat_map(|(code, table)| table.iter().map(move |case| (code, *case)))
    {
        let response = post_changed(&mut partner, &sale, change).await;
        assert_eq!(
            response.error_code().as_deref(),
            Some(code),
            "{name}: {} {:?}",
            response.status,
            response.body
        );
        expect_error(&response, 401, code);
    }
    assert_eq!(partner.balance("USD").await, "1000.00");
}

#[tokio::test]
async fn signature_of_other_partner_is_rejected() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let (mut partner, other) = (
        operator.add_partner("100").await,
        operator.add_partner("100").await,
    );
    let body = order_body(&sale, 1).to_string();
    let mut headers = partner.headers(ORDERS, body.as_bytes());
    headers.insert(
        SIGNATURE,
        other.headers(ORDERS, body.as_bytes())[SIGNATURE].clone(),
    );
    expect_error(&partner.post(headers, body).await, 401, "INVALID_SIGNATURE");
}

#[tokio::test]
async fn repeated_signature_orders_once() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    let body = order_body(&sale, 1).to_string();
    let headers = partner.headers(ORDERS, body.as_bytes());
    let first = partner.post(headers.clone(), body.clone()).await;
    let second = partner.post(headers, body).await;
    expect_success(&first, 201);
    assert_eq!((second.body, second.status), (first.body, first.status));
    assert_eq!(partner.balance("USD").await, "75.00");
}

#[tokio::test]
async fn code_read_requires_signature() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("100").await;
    let order = expect_success(&partner.order(&sale, 1).await, 201);
    let path = format!("/api/v1/orders/{}/vouchers", order["order_id"].as_str().unwrap());
    let short = path.strip_prefix("/api/v1").unwrap();
    expect_error(&partner.get(short).await, 401, "INVALID_SIGNATURE");
    let mut headers = HeaderMap::new();
    let credentials = partner.client.credentials().clone();
    credentials
        .sign("POST", &path, b"", unix_seconds())
        .apply_to(&mut headers);
    let response = partner
        .client
        .send_raw(Method::GET, &path, headers.clone(), "")
        .await
        .unwrap();
    expect_error(&response, 401, "INVALID_SIGNATURE");
    credentials
        .sign("GET", short, b"", unix_seconds())
        .apply_to(&mut headers);
    let response = partner
        .client
        .send_raw(Method::GET, &path, headers, "")
        .await
        .unwrap();
    expect_success(&response, 200);
}

#[tokio::test]
async fn wrong_signature_in_the_sandbox_shows_what_was_to_be_signed_and_stays_explained() {
    let service = Instance::start_with(&[("VOUCHSAFE_LIMIT_AUTH", "2/60")]);
    let mut partner = Operator::of(&service).add_partner("100").await;
    let body = r#"{"items":[]}"#;
    for _ in 0..4 {
        let mut headers = partner.headers(ORDERS, body.as_bytes());
        let timestamp = headers[TIMESTAMP].to_str().unwrap().to_owned();
        let wrong = format!("t={timestamp},v1={}", "0".repeat(64));
        headers.insert(SIGNATURE, HeaderValue::from_str(&wrong).unwrap());
        let error = expect_error(
            &partner.post(headers, body.to_owned()).await,
            401,
            "INVALID_SIGNATURE",
        );
        let message = format!("{timestamp}POST{ORDERS}{body}");
        let sha256 = hex::encode(Sha256::digest(message.as_bytes()));
        let expected = json!([
            { "field": "signed_bytes", "message": message.len().to_string() },
            { "field": "signed_sha256", "message": sha256 },
        ]);
        assert_eq!(error["details"], expected);
    }
    let mut stranger = partner.headers(ORDERS, body.as_bytes());
    stranger.insert(API_SECRET, HeaderValue::from_static("wrong"));
    let response = partner.post(stranger, body.to_owned()).await;
    expect_error(&response, 429, "RATE_LIMIT_EXCEEDED");
}
