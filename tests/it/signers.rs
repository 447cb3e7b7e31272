//! Tests of the partner documentation: signers and receivers in five languages, and the commands of its
//! pages, against the test vectors and a real service.
//!
//! A missing program fails the test with an installation hint.

mod commands;
mod languages;
pub(crate) mod programs;
mod receivers;
#[path = "../../docs/partner/receivers/verify.rs"]
#[allow(dead_code, unreachable_pub, reason = "a standalone program")]
mod rust_receiver;
#[path = "../../docs/partner/signers/sign.rs"]
#[allow(dead_code, unreachable_pub, reason = "a standalone program")]
mod rust_signer;

use serde::Deserialize;
use time::OffsetDateTime;
use vouchsafe_security::credential::ApiSecret;
use vouchsafe_security::framing::{API_PREFIX, SignedRequest};
use vouchsafe_security::headers::{AuthHeaders, UniqueHeader};
use vouchsafe_security::signature;
use vouchsafe_test_harness::shared;

use self::languages::languages;
use self::programs::{DOCS, DocsWorkspace};

/// A minimal sandbox order.
const ORDER: &str = r#"{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1}]}"#;

/// A test vector of `vectors.json`, as signing.md describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    name: String,
    secret: String,
    timestamp: String,
    method: String,
    path: String,
    body: String,
    signature: String,
}

fn vectors() -> Vec<Vector> {
    let text = std::fs::read_to_string(format!("{DOCS}/signers/vectors.json")).unwrap();
    let vectors: Vec<Vector> = serde_json::from_str(&text).unwrap();
    assert!(vectors.len() >= 8, "only {} vectors", vectors.len());
    vectors
}

#[test]
fn service_accepts_every_test_vector() {
    for vector in vectors() {
        let secret = ApiSecret::parse(vector.secret.as_bytes()).unwrap();
        let presented = AuthHeaders {
            api_key: UniqueHeader::Missing,
            api_secret: UniqueHeader::Missing,
            timestamp: UniqueHeader::Single(vector.timestamp.as_bytes()),
            signature: UniqueHeader::Single(vector.signature.as_bytes()),
            idempotency_key: UniqueHeader::Missing,
        };
        let path = match vector.path.strip_prefix(API_PREFIX) {
            Some(_) => vector.path.clone(),
            None => format!("{API_PREFIX}{}", vector.path),
        };
        let request = SignedRequest {
            method: &vector.method,
            path: &path,
            body: vector.body.as_bytes(),
        };
        let now = OffsetDateTime::from_unix_timestamp(vector.timestamp.parse().unwrap()).unwrap();
        let accepted = signature::verify(&secret, &presented, request, now);
        assert_eq!(accepted, Ok(()), "{}", vector.name);
    }
}

#[test]
fn signers_match_every_test_vector() {
    let workspace = DocsWorkspace::new();
    for language in languages(&workspace) {
        for vector in vectors() {
            let request = [vector.method.as_str(), &vector.path];
            let printed = language.sign(&vector.secret, request, Some(&vector.timestamp), &vector.body);
            let expected = format!(
                "X-Timestamp: {}\nX-Signature: {}\n",
                vector.timestamp, vector.signature
            );
            assert_eq!(printed, expected, "{}: {}", language.name, vector.name);
        }
    }
}

#[test]
fn signers_place_order() {
    let service = shared();
    let workspace = DocsWorkspace::with_service(service);
    let url = format!("{}/orders", service.base_url());
    for language in languages(&workspace) {
        let headers = language.sign(&workspace.api_secret(), ["POST", "/api/v1/orders"], None, ORDER);
        let key = format!("Idempotency-Key: order-from-{}", language.name);
        let read = ["-H", "@-", "-H", "@partner.headers"];
        let body = [
            "-H",
            &key,
            "-H",
            "Content-Type: application/json",
            "--data-binary",
            ORDER,
        ];
        let arguments = [&["-sS", "-i", &url][..], &read, &body].concat();
        let response = workspace.run("curl", &arguments, &headers);
        assert!(
            response.starts_with("HTTP/1.1 201"),
            "{}: {response}",
            language.name
        );
        assert!(
            response.contains(r#""status":"DELIVERED""#),
            "{}: {response}",
            language.name
        );
    }
}
