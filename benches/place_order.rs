//! How long an order takes in memory: the whole flow from the key to the verdict, with a store that says yes.
//!
//! `at_once` places so many together, so that the journal gathers batches as it does under load. `by_skus` and `by_partners`
//! place 64 together, with from one to as many SKUs or partners in memory as actors live at once, who take turns.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a bench has nobody to tell, and runs on its own thread"
)]

#[path = "parts/growth.rs"]
mod growth;
#[path = "parts/world.rs"]
mod world;
#[path = "parts/yes_store.rs"]
#[allow(dead_code, reason = "shared with other benches")]
mod yes_store;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use crate::growth::DECADES;
use crate::world::{TOGETHER, World};
use crate::yes_store::Claims;

/// Vouchers that a SKU has in memory at first, where there are many of them.
const CHUNK: i64 = 32;

fn orders_at_once(criterion: &mut Criterion, runtime: &Runtime) {
    let mut group = growth::group(criterion, "place_order_at_once");
    let local = LocalSet::new();
    let world = local.block_on(runtime, World::new(Claims::InFull, 1, 1));
    for at_once in [1, 16, 256] {
        group.throughput(Throughput::Elements(at_once as u64));
        group.bench_function(BenchmarkId::from_parameter(at_once), |bencher| {
            bencher.iter_custom(|rounds| local.block_on(runtime, world.place(rounds, at_once)));
        });
    }
    group.finish();
}

fn orders_by(criterion: &mut Criterion, runtime: &Runtime, name: &str, parties: fn(u32) -> (u32, u32)) {
    let mut group = growth::group(criterion, name);
    group.throughput(Throughput::Elements(TOGETHER as u64));
    for size in DECADES {
        let local = LocalSet::new();
        let (skus, partners) = parties(size);
        let world = local.block_on(runtime, World::new(Claims::ByTheChunk(CHUNK), skus, partners));
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter_custom(|rounds| local.block_on(runtime, world.place(rounds, TOGETHER)));
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
