//! Authentication: API key, secret, allowlist, suspension and revocation.

use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;
use vouchsafe_api_client::signer::{API_KEY, API_SECRET};

use vouchsafe_test_harness::{Operator, Partner, expect_error, expect_success, id_of, order_body, shared};

/// Returns the error without the parts that differ per request.
fn error_without_trace(response: &ApiResponse, status: u16, code: &str) -> (Value, Vec<String>) {
    let mut error = expect_error(response, status, code);
    error["trace_id"] = Value::Null;
    let headers = response.headers.iter();
    let headers = headers.filter(|(name, _)| !["x-trace-id", "date"].contains(&name.as_str()));
    let mut headers: Vec<_> = headers
        .map(|(name, value)| format!("{name}: {value:?}"))
        .collect();
    headers.sort_unstable();
    (error, headers)
}

/// Returns the partner's key and secret as headers.
pub(crate) fn api_headers(partner: &Partner) -> HeaderMap {
    let mut headers = HeaderMap::new();
    partner.client.credentials().insert_api_headers(&mut headers);
    headers
}

/// Reads the wallets with exactly these headers.
pub(crate) async fn get_wallets(partner: &mut Partner, headers: HeaderMap) -> ApiResponse {
    let call = partner
        .client
        .send_raw(Method::GET, "/api/v1/wallets", headers, "");
    call.await.unwrap()
}

#[tokio::test]
async fn invalid_credentials_of_any_kind_return_same_error() {
    let mut operator = Operator::of(shared());
    let (mut partner, other, revoked) = (
        operator.add_partner("1").await,
        operator.add_partner("1").await,
        operator.add_partner("1").await,
    );
    operator.revoke_credential(&revoked).await;
    let valid = api_headers(&partner);
    let [key, secret] = [API_KEY, API_SECRET].map(|name| valid[name].to_str().unwrap());
    let unknown = format!("{}{}", &key[..key.len() - 8], "00000000");
    let set = |name: HeaderName, value: &str| {
        let mut headers = valid.clone();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        headers
    };
    let remove = |name: HeaderName| {
        let mut headers = valid.clone();
        headers.remove(name);
        headers
    };
    let repeat = |name: HeaderName| {
        let mut headers = valid.clone();
        headers.append(&name, valid[&name].clone());
        headers
    };
    let secret_of_other = api_headers(&other)[API_SECRET].to_str().unwrap().to_owned();
    let cases = [
        ("no key", remove(API_KEY)),
        ("no secret", remove(API_SECRET)),
        ("nothing", HeaderMap::new()),
        ("an unknown key", set(API_KEY, &unknown)),
        ("an invalid key", set(API_KEY, "' OR 1=1 --")),
        ("an empty key", set(API_KEY, "")),
        (
            "a production key",
            set(API_KEY, &key.replace("vs_sandbox_", "vs_live_")),
        ),
        ("an upper-case key", set(API_KEY, &key.to_uppercase())),
        ("a wrong secret", set(API_SECRET, &secret.to_uppercase())),
        ("half a secret", set(API_SECRET, &secret[..secret.len() / 2])),
        ("another partner's secret", set(API_SECRET, &secret_of_other)),
        ("two keys", repeat(API_KEY)),
        ("two secrets", repeat(API_SECRET)),
        ("revoked", api_headers(&revoked)),
    ];
    assert!(key.starts_with("vs_sandbox_"));
    let mut errors = Vec::new();
    for (name, headers) in cases {
        let response = get_wallets(&mut partner, headers).await;
        assert_eq!(response.status, 401, "{name}: {:?}", response.body);
        errors.push(error_without_trace(&response, 401, "INVALID_CREDENTIALS"));
    }
    assert!(errors.iter().all(|one| *one == errors[0]), "{errors:#?}");
    expect_success(&partner.get("/wallets").await, 200);
}

#[tokio::test]
async fn signed_request_with_unknown_key_or_wrong_secret_returns_same_error() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("100").await;
    let body = order_body(&sale, 1).to_string();
    let mut errors = Vec::new();
    for (name, value) in [(API_KEY, "vs_sandbox_unknown"), (API_SECRET, "wrong")] {
        let mut headers = partner.headers("/api/v1/orders", body.as_bytes());
        headers.insert(name, HeaderValue::from_static(value));
        let response = partner.post(headers, body.clone()).await;
        errors.push(error_without_trace(&response, 401, "INVALID_CREDENTIALS"));
    }
    assert_eq!(errors[0], errors[1]);
}

#[tokio::test]
async fn partner_route_without_credentials_is_rejected() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1").await;
    for (method, path) in [
        (Method::GET, "/categories"),
        (Method::GET, "/products"),
        (Method::GET, "/products/sbx-instant"),
        (Method::POST, "/orders"),
        (Method::GET, "/orders/ord_0"),
        (Method::GET, "/orders/ord_0/vouchers"),
        (Method::GET, "/wallets"),
        (Method::GET, "/transactions"),
        (Method::POST, "/credentials/rotate"),
    ] {
        let path = format!("/api/v1{path}");
        let response = partner
            .client
            .send_raw(method, &path, HeaderMap::new(), "")
            .await
            .unwrap();
        expect_error(&response, 401, "INVALID_CREDENTIALS");
    }
}

#[tokio::test]
async fn address_off_allowlist_is_rejected_after_authentication() {
    let mut operator = Operator::of(shared());
    for allowlist in [&["192.0.2.0/24", "2001:db8::/32"][..], &[]] {
        let mut partner = operator.add_partner_with_allowlist(allowlist).await;
        let error = expect_error(&partner.get("/wallets").await, 403, "IP_NOT_ALLOWED");
        assert!(
            error["message"].as_str().unwrap().contains("127.0.0.1"),
            "{error}"
        );
        let response = partner.send_signed(Method::POST, "/orders", "{}").await;
        expect_error(&response, 403, "IP_NOT_ALLOWED");
        // Without the right secret the response does not reveal the allowlist.
        let mut wrong = api_headers(&partner);
        wrong.insert(API_SECRET, HeaderValue::from_static("wrong"));
        let response = get_wallets(&mut partner, wrong).await;
        expect_error(&response, 401, "INVALID_CREDENTIALS");
        operator
            .patch_partner(&partner, &json!({ "allowlist": ["127.0.0.1"] }))
            .await;
        expect_success(&partner.get("/wallets").await, 200);
    }
}

#[tokio::test]
async fn forwarding_header_without_proxy_is_ignored() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner_with_allowlist(&["192.0.2.7"]).await;
    for (name, value) in [
        ("x-forwarded-for", "192.0.2.7"),
        ("forwarded", "for=192.0.2.7"),
        ("x-real-ip", "192.0.2.7"),
        ("true-client-ip", "192.0.2.7"),
    ] {
        let mut spoofed = api_headers(&partner);
        spoofed.insert(name, HeaderValue::from_static(value));
        let response = get_wallets(&mut partner, spoofed).await;
        expect_error(&response, 403, "IP_NOT_ALLOWED");
    }
}

#[tokio::test]
async fn credential_allowlist_narrows_partner_allowlist() {
    let mut operator = Operator::of(shared());
    let partner = operator.add_partner("1").await;
    let path = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    for (allowlist, status) in [
        (json!(["192.0.2.0/24"]), 403),
        (json!([]), 403),
        (json!(["127.0.0.1"]), 200),
    ] {
        let issued = operator
            .send_json(Method::POST, &path, &json!({ "allowlist": allowlist }))
            .await;
        let response = partner.with_credential(&issued).get("/wallets").await;
        assert_eq!(response.status, status, "{allowlist}: {:?}", response.body);
    }
}

#[tokio::test]
async fn suspension_and_allowlist_apply_to_the_next_request() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    let paid = id_of(&expect_success(&partner.order(&sale, 1).await, 201));
    operator
        .patch_partner(&partner, &json!({ "suspended": true }))
        .await;
    expect_error(&partner.get("/wallets").await, 403, "PARTNER_SUSPENDED");
    expect_error(&partner.order(&sale, 1).await, 403, "PARTNER_SUSPENDED");
    assert_eq!(partner.count_codes(&paid).await, 1, "codes that it has paid for");
    operator
        .patch_partner(&partner, &json!({ "codes_blocked": true }))
        .await;
    expect_error(&partner.get_codes(&paid).await, 403, "PARTNER_SUSPENDED");
    operator
        .patch_partner(
            &partner,
            &json!({ "suspended": false, "allowlist": ["203.0.113.0/24"] }),
        )
        .await;
    expect_error(&partner.get("/wallets").await, 403, "IP_NOT_ALLOWED");
    operator
        .patch_partner(&partner, &json!({ "allowlist": ["127.0.0.0/8"] }))
        .await;
    expect_success(&partner.order(&sale, 1).await, 201);
}

#[tokio::test]
async fn revoked_credential_is_rejected_while_new_one_works() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1").await;
    let path = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    let issued = operator.send_json(Method::POST, &path, &json!({})).await;
    expect_success(&partner.get("/wallets").await, 200);
    operator.revoke_credential(&partner).await;
    expect_error(&partner.get("/wallets").await, 401, "INVALID_CREDENTIALS");
    expect_success(&partner.with_credential(&issued).get("/wallets").await, 200);
}
