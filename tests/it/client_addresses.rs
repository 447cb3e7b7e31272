//! Client addresses behind a trusted proxy: allowlist, audit log and authentication failures.

use std::sync::OnceLock;

use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;
use vouchsafe_api_client::partner::unix_seconds;

use crate::access::{api_headers, get_wallets};
use vouchsafe_test_harness::{
    Instance, Operator, Partner, ServiceDatabase, expect_error, expect_success, text_of,
};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

const CLIENT_ADDRESS: &str = "203.0.113.7";

/// A service that trusts this machine as proxy, with the default failure limit and a window longer than any
/// test.
fn service() -> &'static Instance {
    static SERVICE: OnceLock<Instance> = OnceLock::new();
    SERVICE.get_or_init(|| {
        Instance::start_static(&[
            ("VOUCHSAFE_TRUSTED_PROXIES", "127.0.0.0/8, 10.0.0.0/8"),
            ("VOUCHSAFE_LIMIT_AUTH", "5/86400"),
        ])
    })
}

/// The same without a limit that the test could reach: refused addresses count as failed authentications.
fn unlimited_service() -> &'static Instance {
    static SERVICE: OnceLock<Instance> = OnceLock::new();
    SERVICE.get_or_init(|| {
        Instance::start_static(&[
            ("VOUCHSAFE_TRUSTED_PROXIES", "127.0.0.0/8, 10.0.0.0/8"),
            ("VOUCHSAFE_LIMIT_AUTH", "1000/60"),
        ])
    })
}

async fn add_partner() -> (Operator, Partner) {
    add_partner_to(service()).await
}

async fn add_partner_to(service: &Instance) -> (Operator, Partner) {
    let mut operator = Operator::of(service);
    let partner = operator
        .add_partner_with_allowlist(&["203.0.113.0/24", "2001:db8::/32"])
        .await;
    (operator, partner)
}

/// Sends a read with these values of `X-Forwarded-For`.
async fn read_with_headers(
    partner: &mut Partner,
    forwarded: &[&str],
    wrong: Option<(&'static str, &'static str)>,
) -> ApiResponse {
    let mut headers = api_headers(partner);
    for value in forwarded {
        headers.append(FORWARDED_FOR, HeaderValue::from_str(value).unwrap());
    }
    if let Some((name, value)) = wrong {
        headers.insert(name, HeaderValue::from_static(value));
    }
    get_wallets(partner, headers).await
}

#[tokio::test]
async fn rightmost_untrusted_hop_is_matched_against_allowlist() {
    let (_, mut partner) = add_partner_to(unlimited_service()).await;
    for (forwarded, admitted) in [
        (&[CLIENT_ADDRESS][..], true),
        (&["198.51.100.1, 203.0.113.7"], true),
        (&["203.0.113.7, 10.0.0.2"], true),
        (&["198.51.100.1", "203.0.113.7", "10.0.0.2"], true),
        (&["::ffff:203.0.113.7"], true),
        (&["2001:db8::7"], true),
        (&["203.0.113.7, 198.51.100.1"], false),
        (&["203.0.113.7", "198.51.100.1"], false),
        (&["203.0.113.7, 198.51.100.1, 10.0.0.2"], false),
        (&[], false),
        (&["10.0.0.2"], false),
        (&["203.0.113.7, unknown"], false),
        (&["203.0.113.7,"], false),
        (&[""], false),
    ] {
        let response = read_with_headers(&mut partner, forwarded, None).await;
        if admitted {
            expect_success(&response, 200);
        } else {
            expect_error(&response, 403, "IP_NOT_ALLOWED");
            assert_eq!(
                response.header("ratelimit"),
                None,
                "an unknown client must not consume quota"
            );
        }
    }
}

#[tokio::test]
async fn other_forwarding_headers_are_ignored() {
    let (_, mut partner) = add_partner_to(unlimited_service()).await;
    for (name, value) in [
        ("forwarded", "for=203.0.113.7"),
        ("x-real-ip", CLIENT_ADDRESS),
        ("true-client-ip", CLIENT_ADDRESS),
    ] {
        let response = read_with_headers(&mut partner, &["198.51.100.1"], Some((name, value))).await;
        let error = expect_error(&response, 403, "IP_NOT_ALLOWED");
        assert!(
            error["message"].as_str().unwrap().contains("198.51.100.1"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn code_read_is_audited_with_client_address() {
    let (mut operator, mut partner) = add_partner().await;
    let sale = operator.add_stocked_product(1).await;
    operator.top_up(&partner.partner_id, "USD", "100").await;
    let body = vouchsafe_test_harness::order_body(&sale, 1).to_string();
    let mut headers = partner.headers("/api/v1/orders", body.as_bytes());
    headers.insert(
        FORWARDED_FOR,
        HeaderValue::from_static("198.51.100.9, 203.0.113.7"),
    );
    let order = expect_success(&partner.post(headers, body).await, 201);
    let path = format!("/api/v1/orders/{}/vouchers", order["order_id"].as_str().unwrap());
    let mut headers = HeaderMap::new();
    let credentials = partner.client.credentials().clone();
    credentials
        .sign("GET", &path, b"", unix_seconds())
        .apply_to(&mut headers);
    headers.insert(
        FORWARDED_FOR,
        HeaderValue::from_static("198.51.100.9, 203.0.113.7"),
    );
    expect_success(
        &partner
            .client
            .send_raw(Method::GET, &path, headers, "")
            .await
            .unwrap(),
        200,
    );
    let mut database = ServiceDatabase::of(service()).await;
    let trail = "SELECT after ->> 'address' FROM audit_log WHERE action = 'codes.retrieve' AND operator = $1";
    let addresses = database.texts(trail, &partner.partner_id).await;
    assert_eq!(addresses, [CLIENT_ADDRESS]);
}

/// Returns the error without the parts that differ per request.
fn error_without_trace(response: &ApiResponse) -> (Value, Option<&str>, Vec<&str>) {
    let mut error = vouchsafe_test_harness::json_of(response)["error"].clone();
    error["trace_id"] = Value::Null;
    let mut names: Vec<&str> = response.headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    (error, response.header("retry-after"), names)
}

#[tokio::test]
async fn repeated_auth_failures_hide_reason_and_admit_valid_requests() {
    const WRONG: [(&str, &str); 5] = [
        ("x-api-secret", "wrong"),
        ("x-api-key", "vs_sandbox_00000000000000000000000000000000"),
        ("x-api-key", "nonsense"),
        (
            "x-api-secret",
            "vss_0000000000000000000000000000000000000000000000000000000000000000",
        ),
        ("x-api-key", ""),
    ];
    let (_, mut partner) = add_partner().await;
    let address_of_failures = "203.0.113.50";
    for wrong in WRONG {
        expect_error(
            &read_with_headers(&mut partner, &[address_of_failures], Some(wrong)).await,
            401,
            "INVALID_CREDENTIALS",
        );
    }
    let mut errors = Vec::new();
    for wrong in WRONG {
        let response = read_with_headers(&mut partner, &[address_of_failures], Some(wrong)).await;
        expect_error(&response, 429, "RATE_LIMIT_EXCEEDED");
        let wait_s: u32 = response.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=86_400).contains(&wait_s));
        errors.push(response);
    }
    // The sandbox explains a wrong signature with the right key.
    let mut headers = partner.headers("/api/v1/orders", b"{}");
    headers.insert(FORWARDED_FOR, HeaderValue::from_static("203.0.113.50"));
    headers.insert("x-signature", HeaderValue::from_static("t=1,v1=0"));
    expect_error(&partner.post(headers, "{}").await, 401, "INVALID_SIGNATURE");
    let names = |response: &ApiResponse| error_without_trace(response).2.join(" ");
    assert!(
        errors.iter().all(|response| names(response) == names(&errors[0])),
        "{errors:#?}"
    );
    assert!(
        errors.iter().all(|response| response.status == 429),
        "{errors:#?}"
    );
    // Valid requests from the same address still pass, and failures from another address have their own
    // limit.
    expect_success(
        &read_with_headers(&mut partner, &[address_of_failures], None).await,
        200,
    );
    expect_error(
        &read_with_headers(&mut partner, &["203.0.113.51"], Some(WRONG[0])).await,
        401,
        "INVALID_CREDENTIALS",
    );
    // Prepended addresses do not change the client address.
    let spoofed = read_with_headers(&mut partner, &["198.51.100.7, 203.0.113.50"], Some(WRONG[0])).await;
    expect_error(&spoofed, 429, "RATE_LIMIT_EXCEEDED");
}

#[tokio::test]
async fn ipv6_clients_share_limit_per_64() {
    let (_, mut partner) = add_partner().await;
    let wrong = Some(("x-api-secret", "wrong"));
    for n in 1..=5 {
        let address = format!("2001:db8:6464:1::{n}");
        expect_error(
            &read_with_headers(&mut partner, &[&address], wrong).await,
            401,
            "INVALID_CREDENTIALS",
        );
    }
    for (address, status) in [("2001:db8:6464:1:ffff::", 429), ("2001:db8:6464:2::1", 401)] {
        let response = read_with_headers(&mut partner, &[address], wrong).await;
        assert_eq!(
            response.status.as_u16(),
            status,
            "{address}: {}",
            text_of(&response)
        );
    }
}

#[tokio::test]
async fn malformed_forwarded_address_counts_for_proxy() {
    let (_, mut partner) = add_partner().await;
    let wrong = Some(("x-api-secret", "wrong"));
    let mut statuses = Vec::new();
    for n in 0..6 {
        let garbled = format!("203.0.113.7, garbled-{n}");
        statuses.push(
            read_with_headers(&mut partner, &[&garbled], wrong)
                .await
                .status
                .as_u16(),
        );
    }
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429]);
}

#[tokio::test]
async fn credential_allowlist_uses_forwarded_address() {
    let (mut operator, partner) = add_partner_to(unlimited_service()).await;
    let path = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    let narrow = json!({ "allowlist": ["203.0.113.9"] });
    let issued = operator.send_json(Method::POST, &path, &narrow).await;
    let mut narrowed = partner.with_credential(&issued);
    let response = read_with_headers(&mut narrowed, &[CLIENT_ADDRESS], None).await;
    expect_error(&response, 403, "IP_NOT_ALLOWED");
    let response = read_with_headers(&mut narrowed, &["203.0.113.9"], None).await;
    expect_success(&response, 200);
}
