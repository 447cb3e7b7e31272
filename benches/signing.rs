//! Benchmark of signing and verifying requests, by body size up to the maximum.
//!
//! A request signed without `/api/v1` costs a second HMAC, because the full path is tried first.

#![allow(clippy::unwrap_used, reason = "a bench may panic")]

#[path = "parts/growth.rs"]
mod growth;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use vouchsafe_security::credential::{ApiKeyPair, generate_key_pair};
use vouchsafe_security::environment::Environment;
use vouchsafe_security::framing::{CanonicalRequest, SignedRequest, Timestamp};
use vouchsafe_security::headers::{AuthHeaders, UniqueHeader};
use vouchsafe_security::signature;
use vouchsafe_simulation::build::NOW;

/// Body sizes in bytes: from an ordinary order to 256 KiB.
const BODIES: [usize; 5] = [96, 1_024, 8_192, 65_536, 262_144];

const PATH: &str = "/api/v1/orders";

/// A JSON object of exactly `bytes` bytes.
fn body(bytes: usize) -> Vec<u8> {
    let filler = "x".repeat(bytes - r#"{"reference":""}"#.len());
    format!(r#"{{"reference":"{filler}"}}"#).into_bytes()
}

const fn request<'a>(path: &'a str, body: &'a [u8]) -> SignedRequest<'a> {
    SignedRequest {
        method: "POST",
        path,
        body,
    }
}

fn signing(criterion: &mut Criterion) {
    let ApiKeyPair { api_secret, .. } = generate_key_pair(Environment::Sandbox, getrandom::fill).unwrap();
    let timestamp = Timestamp::from_unix_s(NOW.unix_timestamp()).unwrap();
    for verified in [false, true] {
        let name = if verified { "verify" } else { "sign" };
        let mut group = growth::group(criterion, name);
        for bytes in BODIES {
            let body = body(bytes);
            group.throughput(Throughput::Bytes(bytes as u64));
            let framed = CanonicalRequest::new(timestamp, request(PATH, &body)).unwrap();
            let signature = signature::sign(&api_secret, timestamp, &framed);
            let presented = AuthHeaders {
                api_key: UniqueHeader::Missing,
                api_secret: UniqueHeader::Missing,
                timestamp: UniqueHeader::Single(timestamp.digits()),
                signature: UniqueHeader::Single(signature.as_bytes()),
                idempotency_key: UniqueHeader::Missing,
            };
            group.bench_function(BenchmarkId::from_parameter(bytes), |bencher| {
                bencher.iter(|| {
                    let request = request(PATH, black_box(&body));
                    if verified {
                        signature::verify(&api_secret, &presented, request, NOW).unwrap();
                    } else {
                        let framed = CanonicalRequest::new(timestamp, request).unwrap();
                        black_box(signature::sign(&api_secret, timestamp, &framed));
                    }
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, signing);
criterion_main!(benches);
