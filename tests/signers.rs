//! Does what the partner documentation shows work as it stands there? The signers and receivers of five languages, the
//! commands of its pages and the Postman collection, run against the test vectors and a real service.
//!
//! What runs them is part of the tests: a program that is missing fails them and says what to install.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends where it cannot go on"
)]

#[path = "signers/commands.rs"]
mod commands;
#[path = "signers/languages.rs"]
mod languages;
#[path = "it/support/wait.rs"]
#[allow(dead_code, reason = "shared with other suites")]
mod wait;
#[path = "signers/postman.rs"]
mod postman;
#[path = "signers/programs.rs"]
mod programs;
#[path = "contract/python.rs"]
#[allow(dead_code, reason = "shared with other suites")]
mod python;
#[path = "it/support/receiver.rs"]
#[allow(dead_code, reason = "shared with other suites")]
mod receiver;
#[path = "signers/receivers.rs"]
mod receivers;
#[path = "../docs/partner/receivers/verify.rs"]
#[allow(dead_code, unreachable_pub, reason = "a program of its own")]
mod rust_receiver;
#[path = "../docs/partner/signers/sign.rs"]
#[allow(dead_code, unreachable_pub, reason = "a program of its own")]
mod rust_signer;
#[path = "it/support/service.rs"]
#[allow(dead_code, reason = "shared with other suites")]
mod service;

use serde::Deserialize;
use time::OffsetDateTime;
use vouchsafe::access::credential::ApiSecret;
use vouchsafe::access::framing::{API_PREFIX, SignedRequest};
use vouchsafe::access::headers::{UniqueHeader, AuthHeaders};
use vouchsafe::access::signature;

use crate::languages::languages;
use crate::programs::{DOCS, DocsWorkspace};

/// What the tests run beside the documentation's own programs.
const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/signers");

/// The smallest order of the sandbox.
const ORDER: &str = r#"{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1}]}"#;

/// What signing.md and `vectors.json` call a test vector.
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
fn the_service_accepts_every_vector() {
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
        let then = OffsetDateTime::from_unix_timestamp(vector.timestamp.parse().unwrap()).unwrap();
        let accepted = signature::verify(&secret, &presented, request, then);
        assert_eq!(accepted, Ok(()), "{}", vector.name);
    }
}

#[test]
fn each_language_signs_every_vector() {
    let place = DocsWorkspace::new();
    for language in languages(&place) {
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
fn each_language_places_an_order() {
    let service = service::shared();
    let place = DocsWorkspace::with_service(service);
    let url = format!("{}/orders", service.base_url());
    for language in languages(&place) {
        let headers = language.sign(&place.api_secret(), ["POST", "/api/v1/orders"], None, ORDER);
        let key = format!("Idempotency-Key: order-from-{}", language.name);
        let read = ["-H", "@-", "-H", "@partner.headers"];
        let given = [
            "-H",
            &key,
            "-H",
            "Content-Type: application/json",
            "--data-binary",
            ORDER,
        ];
        let arguments = [&["-sS", "-i", &url][..], &read, &given].concat();
        let answer = place.run("curl", &arguments, &headers);
        assert!(answer.starts_with("HTTP/1.1 201"), "{}: {answer}", language.name);
        assert!(
            answer.contains(r#""status":"DELIVERED""#),
            "{}: {answer}",
            language.name
        );
    }
}
