//! Tests of Retry-After, stored response bodies and DNS rebinding.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::header::HeaderValue;
use time::macros::datetime;

use super::*;
use vouchsafe_http_client::resolver::HostLookup;
use vouchsafe_http_client::url_policy::LoopbackTargets;

#[test]
fn retry_after_is_parsed_as_seconds_or_date() {
    let now = datetime!(2026-11-20 12:00 UTC);
    for (text, expected) in [
        ("120", Some(120)),
        (" 7 ", Some(7)),
        ("Fri, 20 Nov 2026 12:00:30 GMT", Some(30)),
        ("Fri, 20 Nov 2026 11:00:00 GMT", None),
        ("soon", None),
        ("-1", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_str(text).unwrap());
        assert_eq!(
            retry_after(&headers, now),
            expected.map(Duration::from_secs),
            "{text}"
        );
    }
}

#[test]
fn response_body_is_stored_without_control_characters() {
    assert_eq!(printable(b"ok\n\0\x1b[31m\xff"), "ok\n  [31m\u{fffd}");
}

#[test]
fn response_that_repeats_the_request_is_recognized() {
    let body = br#"{"event":"order.delivered","event_id":"evt_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f","created_at":"2026-11-20T12:00:00Z"}"#;
    let text = std::str::from_utf8(body).unwrap();
    let signatures = [
        "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4= v1,AAAAfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="
            .to_owned(),
    ];
    for echo in [
        format!("unexpected: {text}"),
        format!("{{\"data\": {}}}", serde_json::to_string(text).unwrap()),
        text.replace(':', ": ").replace(',', ",\n  "),
        "wrong signature AAAAfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN".to_owned(),
    ] {
        assert!(is_echo(&echo, body, &signatures), "{echo}");
    }
    for other in [
        "",
        "no",
        r#"{"error":"unknown order","event":"order.delivered","event_id":"evt_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f"}"#,
    ] {
        assert!(!is_echo(other, body, &signatures), "{other}");
    }
}

#[tokio::test]
async fn host_rebound_to_a_private_address_is_refused() {
    let lookups = Arc::new(AtomicUsize::new(0));
    let lookup: HostLookup = Arc::new(move |_| {
        let first = lookups.fetch_add(1, Ordering::Relaxed) == 0;
        let address: IpAddr = if first { "1.1.1.1" } else { "127.0.0.1" }.parse().unwrap();
        Box::pin(async move { vec![address] })
    });
    let policy = UrlPolicy::new(LoopbackTargets::Refused, &[]);
    let resolver = Resolver::new(policy, lookup);
    assert!(resolver.resolve_host("shop.example", Some(443)).await.is_ok());
    let client = vouchsafe_http_client::client_builder("http:")
        .unwrap()
        .dns_resolver(Arc::new(resolver))
        .build()
        .unwrap();
    let refused = client.post("http://shop.example:9/").send().await.unwrap_err();
    assert_eq!(fault_of_error(&refused), DeliveryFault::Forbidden);
}
