//! Benchmark of an actor round trip: directory lookup, request, reply, and release of the hold.
//!
//! `here` uses actors on the calling thread, `across` actors on a separate arbiter. The directory contains 1
//! to 100,000 actors, which are called round-robin.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench may panic")]

#[path = "parts/mod.rs"]
mod parts;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_rt::{Arbiter, System};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tokio::task::LocalSet;
use vouchsafe_actors::inventory::{Inventory, Supply};
use vouchsafe_actors::supervisor::{DecisionDeadline, Spawner};
use vouchsafe_actors::wallet::purse::ReserveRequest;
use vouchsafe_actors::wallet::{Funds, Wallets};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::Expiry;
use vouchsafe_simulation::build::{partner, sku, usd};

use crate::parts::always_commits::{AlwaysCommits, StockClaims};
use crate::parts::growth::{self, DECADES};

/// Vouchers per SKU.
const STOCK: i64 = 4;

/// A group of wallet or inventory actors.
trait ActorGroup {
    /// Requests a hold from one actor and releases it.
    async fn hold_and_release(&self, index: usize);
}

struct WalletGroup {
    wallets: Wallets,
    partners: Vec<PartnerId>,
}

impl WalletGroup {
    fn new(spawner: Spawner, size: u32) -> Self {
        let store = Arc::new(AlwaysCommits::new(StockClaims::OneChunk(STOCK)));
        Self {
            wallets: Wallets::new(spawner, store),
            partners: (1..=size).map(|number| partner(number.into())).collect(),
        }
    }
}

impl ActorGroup for WalletGroup {
    async fn hold_and_release(&self, index: usize) {
        let (request, deadline) = (
            ReserveRequest::Debit(Amount::from_minor(1)),
            DecisionDeadline::start(),
        );
        let partner_id = self.partners[index % self.partners.len()];
        match self.wallets.hold(partner_id, usd(), request, &deadline).await {
            Ok(Funds::Held(hold)) => drop(black_box(hold)),
            other => panic!("{other:?}"),
        }
    }
}

struct InventoryGroup {
    inventory: Inventory,
    skus: Vec<Sku>,
}

impl InventoryGroup {
    fn new(spawner: Spawner, size: u32) -> Self {
        let store = Arc::new(AlwaysCommits::new(StockClaims::OneChunk(STOCK)));
        Self {
            inventory: Inventory::new(spawner, store),
            skus: (1..=size)
                .map(|number| sku(&format!("p-{number}"), 2_500))
                .collect(),
        }
    }
}

impl ActorGroup for InventoryGroup {
    async fn hold_and_release(&self, index: usize) {
        let (sku, deadline) = (&self.skus[index % self.skus.len()], DecisionDeadline::start());
        match self.inventory.hold(sku, 1, Expiry::PAST, &deadline).await {
            Ok(Supply::Held(hold)) => drop(black_box(hold)),
            other => panic!("{other:?}"),
        }
    }
}

/// Calls `rounds` actors in turn; returns the elapsed time.
async fn time_requests(actors: &impl ActorGroup, next_index: &mut usize, rounds: u64) -> Duration {
    let started = Instant::now();
    for _ in 0..rounds {
        actors.hold_and_release(*next_index).await;
        *next_index += 1;
    }
    started.elapsed()
}

fn bench_here<C: ActorGroup>(criterion: &mut Criterion, name: &str, create_group: fn(Spawner, u32) -> C) {
    let runtime = growth::runtime();
    let mut group = growth::group(criterion, name);
    group.throughput(Throughput::Elements(1));
    for size in DECADES {
        let (local, actors, mut next_index) =
            (LocalSet::new(), create_group(Spawner::CurrentThread, size), 0);
        local.block_on(&runtime, time_requests(&actors, &mut next_index, size.into()));
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter_custom(|rounds| {
                local.block_on(&runtime, time_requests(&actors, &mut next_index, rounds))
            });
        });
    }
    group.finish();
}

fn bench_across(criterion: &mut Criterion) {
    let system = System::new();
    let mut group = growth::group(criterion, "ask_wallet_across");
    group.throughput(Throughput::Elements(1));
    for size in DECADES {
        let arbiter = Arbiter::new();
        let (actors, mut next_index) = (WalletGroup::new(Spawner::on_arbiter(arbiter.handle()), size), 0);
        system.block_on(time_requests(&actors, &mut next_index, size.into()));
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter_custom(|rounds| system.block_on(time_requests(&actors, &mut next_index, rounds)));
        });
        arbiter.stop();
        arbiter.join().unwrap();
    }
    group.finish();
}

fn round_trips(criterion: &mut Criterion) {
    bench_here(criterion, "ask_wallet_here", WalletGroup::new);
    bench_here(criterion, "ask_shelf_here", InventoryGroup::new);
    bench_across(criterion);
}

criterion_group!(benches, round_trips);
criterion_main!(benches);
