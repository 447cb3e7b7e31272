//! Benchmark of signing and verifying requests, by body size up to the maximum.
//!
//! A request signed without `/api/v1` costs a second HMAC, because the full path is tried first.

#![allow(clippy::unwrap_used, reason = "a bench may panic")]

#[path = "parts/mod.rs"]
mod parts;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

use crate::parts::growth;
use crate::parts::signed_order::SignedOrder;

/// Body sizes in bytes: from an ordinary order to 256 KiB.
const BODIES: [usize; 5] = [96, 1_024, 8_192, 65_536, 262_144];

/// A JSON object of exactly `bytes` bytes.
fn body(bytes: usize) -> Vec<u8> {
    let filler = "x".repeat(bytes - r#"{"reference":""}"#.len());
    format!(r#"{{"reference":"{filler}"}}"#).into_bytes()
}

fn signing(criterion: &mut Criterion) {
    for verified in [false, true] {
        let name = if verified { "verify" } else { "sign" };
        let mut group = growth::group(criterion, name);
        for bytes in BODIES {
            let body = body(bytes);
            group.throughput(Throughput::Bytes(bytes as u64));
            let order = SignedOrder::new(&body);
            group.bench_function(BenchmarkId::from_parameter(bytes), |bencher| {
                bencher.iter(|| {
                    if verified {
                        order.verify(black_box(&body));
                    } else {
                        black_box(order.sign(black_box(&body)));
                    }
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, signing);
criterion_main!(benches);
