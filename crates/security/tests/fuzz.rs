//! Fuzz targets of this crate: what a client can put into headers.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests panic on failure")]

use std::net::IpAddr;
use std::str::from_utf8;

use time::macros::datetime;
use vouchsafe_security::client_address::{ClientAddress, TrustedProxies};
use vouchsafe_security::credential::ApiSecret;
use vouchsafe_security::framing::{API_PREFIX, CanonicalRequest, SignedRequest, Timestamp};
use vouchsafe_security::headers::{AuthHeaders, UniqueHeader};
use vouchsafe_security::signature;

const DIRECTORY: &str = env!("CARGO_MANIFEST_DIR");

fn header(value: Option<&[u8]>) -> UniqueHeader<'_> {
    value.map_or(UniqueHeader::Missing, UniqueHeader::Single)
}

#[test]
fn signature_headers() {
    const TOKENS: &[&str] = &["t=", "v1=", ",", "1700000000", "00", "AB", " ", "\n"];
    vouchsafe_fuzz::run(DIRECTORY, "signature_headers", TOKENS, |input| {
        // Two lines: timestamp and signature.
        let mut lines = input.splitn(2, |byte| *byte == b'\n');
        let (timestamp, value) = (lines.next(), lines.next());
        let headers = AuthHeaders {
            api_key: UniqueHeader::Missing,
            api_secret: UniqueHeader::Missing,
            timestamp: header(timestamp),
            signature: header(value),
            idempotency_key: UniqueHeader::Missing,
        };
        let request = SignedRequest {
            method: "POST",
            path: "/api/v1/orders",
            body: b"{}",
        };
        let secret = ApiSecret::parse(format!("vss_{}", "a".repeat(64)).as_bytes()).unwrap();
        let now = datetime!(2023-11-14 22:13:20 UTC);
        let verified = signature::verify(&secret, &headers, request, now);
        // The signature has 256 bits: an accepted one is the right one.
        let right = timestamp.and_then(Timestamp::parse).map(|timestamp| {
            let canonical = CanonicalRequest::new(timestamp, request).unwrap();
            signature::sign(&secret, timestamp, &canonical)
        });
        // One space and capital digits are permitted.
        let value = String::from_utf8_lossy(value.unwrap_or_default()).to_lowercase();
        let is_right = right.is_some_and(|right| right == value.replacen(", ", ",", 1));
        assert!(verified.is_err() || is_right);
    });
}

#[test]
fn framing() {
    const TOKENS: &[&str] = &["/", "/api/v1", "{", "GET", "PUT", "1700000000", "..", "%2f", "\n"];
    vouchsafe_fuzz::run(DIRECTORY, "framing", TOKENS, |input| {
        // Four lines: timestamp, method, path, body.
        let mut parts = input.splitn(4, |byte| *byte == b'\n');
        let mut part = || parts.next().unwrap_or_default();
        let (timestamp, method, path, body) = (part(), part(), part(), part());
        let (Some(timestamp), Ok(method), Ok(path)) =
            (Timestamp::parse(timestamp), from_utf8(method), from_utf8(path))
        else {
            return;
        };
        let request = SignedRequest { method, path, body };
        if CanonicalRequest::new(timestamp, request).is_ok() {
            let inner = path.strip_prefix(API_PREFIX).expect("a path of the API");
            assert!(!inner.starts_with("/api/v1/"), "the prefix occurs once");
            assert!(!path.contains(['{', '%', '?', '#', ' ']), "{path}");
            assert!(body.is_empty() || body.starts_with(b"{"));
        }
    });
}

#[test]
fn forwarded_headers() {
    const TOKENS: &[&str] = &[
        "10.0.0.1",
        "203.0.113.7",
        "::1",
        "[2001:db8::1]:443",
        "::ffff:10.0.0.1",
        ",",
        ":80",
        "unknown",
        " ",
        "\n",
    ];
    vouchsafe_fuzz::run(DIRECTORY, "forwarded_headers", TOKENS, |input| {
        // A line per header.
        let proxies: TrustedProxies = "10.0.0.0/8".parse().unwrap();
        let lines = || input.split(|byte| *byte == b'\n');
        let stranger: IpAddr = [198, 51, 100, 1].into();
        assert_eq!(
            proxies.resolve_client(stranger, lines()),
            ClientAddress::Known(stranger),
            "a peer that is no proxy forwards nothing"
        );
        let proxy: IpAddr = [10, 1, 2, 3].into();
        match proxies.resolve_client(proxy, lines()) {
            ClientAddress::Unreadable { proxy: of } => assert_eq!(of, proxy),
            ClientAddress::Known(client) => assert!(client == proxy || !proxies.contains(client)),
        }
    });
}
