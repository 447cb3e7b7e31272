//! Benchmark of order processing in memory: the whole flow from idempotency key to verdict, with a store that
//! commits everything.
//!
//! `at_once` places a number of concurrent orders, which the journal gathers into batches as under load.
//! `by_skus` and `by_partners` place 64 concurrent orders over 1 to 100,000 SKUs or partners, round-robin.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a bench may panic, and runs on its own thread"
)]

#[path = "parts/mod.rs"]
mod parts;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use crate::parts::always_commits::StockClaims;
use crate::parts::bench_engine::{BenchEngine, CONCURRENT_ORDERS};
use crate::parts::growth::{self, DECADES};

/// Vouchers per chunk in benches with many SKUs.
const CHUNK: i64 = 32;

fn orders_at_once(criterion: &mut Criterion, runtime: &Runtime) {
    let mut group = growth::group(criterion, "place_order_at_once");
    let local = LocalSet::new();
    let engine = local.block_on(runtime, BenchEngine::new(StockClaims::InFull, 1, 1));
    for at_once in [1, 16, 256] {
        group.throughput(Throughput::Elements(at_once as u64));
        group.bench_function(BenchmarkId::from_parameter(at_once), |bencher| {
            bencher.iter_custom(|rounds| local.block_on(runtime, engine.place(rounds, at_once)));
        });
    }
    group.finish();
}

fn orders_by(
    criterion: &mut Criterion,
    runtime: &Runtime,
    name: &str,
    sku_and_partner_count: fn(u32) -> (u32, u32),
) {
    let mut group = growth::group(criterion, name);
    group.throughput(Throughput::Elements(CONCURRENT_ORDERS as u64));
    for size in DECADES {
        let local = LocalSet::new();
        let (skus, partners) = sku_and_partner_count(size);
        let engine = local.block_on(
            runtime,
            BenchEngine::new(StockClaims::OneChunk(CHUNK), skus, partners),
        );
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter_custom(|rounds| local.block_on(runtime, engine.place(rounds, CONCURRENT_ORDERS)));
        });
    }
    group.finish();
}

fn orders_in_memory(criterion: &mut Criterion) {
    let runtime = growth::runtime();
    orders_at_once(criterion, &runtime);
    orders_by(criterion, &runtime, "place_order_by_skus", |size| (size, 1));
    orders_by(criterion, &runtime, "place_order_by_partners", |size| (1, size));
}

criterion_group!(benches, orders_in_memory);
criterion_main!(benches);
