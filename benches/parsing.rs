//! Benchmark of parsing order bodies, by number of lines up to the maximum.

#![allow(clippy::unwrap_used, reason = "a bench may panic")]

#[path = "parts/mod.rs"]
mod parts;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use vouchsafe_wire::partner::orders::request;

use crate::parts::growth;

/// Lines per order.
const LINES: [usize; 3] = [1, 10, 100];

/// An order with all optional fields.
fn body(lines: usize) -> String {
    let line = |n: usize| format!(r#"{{"product_id":"amzn-us-{n}","denomination":"25.00","quantity":3}}"#);
    let lines: Vec<_> = (0..lines).map(line).collect();
    format!(
        r#"{{"items":[{}],"currency":"USD","reference":"PO-17","metadata":{{"shop":"3"}},"fulfilment":"AUTO"}}"#,
        lines.join(",")
    )
}

fn parsing(criterion: &mut Criterion) {
    let mut group = growth::group(criterion, "parse_order");
    for lines in LINES {
        let body = body(lines);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(lines), |bencher| {
            bencher.iter(|| black_box(request::parse(black_box(body.as_bytes())).unwrap()));
        });
    }
    group.finish();
}

criterion_group!(benches, parsing);
criterion_main!(benches);
