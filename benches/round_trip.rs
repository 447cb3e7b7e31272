//! What does it cost to ask an actor? Found in its directory, asked, answered, and its hold given back.
//!
//! `here` is an actor on the thread that asks, `across` one on an arbiter of its own. The directory has from one actor to as
//! many as live at once, who are asked in turn.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench has nobody to tell")]

#[path = "parts/growth.rs"]
mod growth;
#[path = "parts/yes_store.rs"]
#[allow(dead_code, reason = "shared with other benches")]
mod yes_store;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_rt::{Arbiter, System};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tokio::task::LocalSet;
use vouchsafe_actors::domain::ids::PartnerId;
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::domain::product::Sku;
use vouchsafe_actors::domain::voucher::Expiry;
use vouchsafe_actors::inventory::{Inventory, Supply};
use vouchsafe_actors::supervisor::{DecisionDeadline, Spawner};
use vouchsafe_actors::testing::build::{partner, sku, usd};
use vouchsafe_actors::wallet::purse::ReserveRequest;
use vouchsafe_actors::wallet::{Funds, Wallets};

use crate::growth::DECADES;
use crate::yes_store::{Claims, YesStore};

/// Vouchers that each SKU has.
const STOCK: i64 = 4;

/// Wallets or shelves, and who is asked.
trait Crowd {
    /// Asks one, and gives back what it holds.
    async fn ask(&self, index: usize);
}

struct Rich {
    wallets: Wallets,
    partners: Vec<PartnerId>,
}

impl Rich {
    fn new(spawner: Spawner, size: u32) -> Self {
        let store = Arc::new(YesStore::new(Claims::ByTheChunk(STOCK)));
        Self {
            wallets: Wallets::new(spawner, store),
            partners: (1..=size).map(|number| partner(number.into())).collect(),
        }
    }
}

impl Crowd for Rich {
    async fn ask(&self, index: usize) {
        let (wish, patience) = (ReserveRequest::Debit(Amount::from_minor(1)), DecisionDeadline::start());
        let partner_id = self.partners[index % self.partners.len()];
        match self.wallets.hold(partner_id, usd(), wish, &patience).await {
            Ok(Funds::Held(hold)) => drop(black_box(hold)),
            other => panic!("{other:?}"),
        }
    }
}

struct Stocked {
    inventory: Inventory,
    skus: Vec<Sku>,
}

impl Stocked {
    fn new(spawner: Spawner, size: u32) -> Self {
        let store = Arc::new(YesStore::new(Claims::ByTheChunk(STOCK)));
        Self {
            inventory: Inventory::new(spawner, store),
            skus: (1..=size)
                .map(|number| sku(&format!("p-{number}"), 2_500))
                .collect(),
        }
    }
}

impl Crowd for Stocked {
    async fn ask(&self, index: usize) {
        let (sku, patience) = (&self.skus[index % self.skus.len()], DecisionDeadline::start());
        match self.inventory.hold(sku, 1, Expiry::PAST, &patience).await {
            Ok(Supply::Held(hold)) => drop(black_box(hold)),
            other => panic!("{other:?}"),
        }
    }
}

/// Asks so many in turn, and says how long that took.
async fn asked(crowd: &impl Crowd, next: &mut usize, rounds: u64) -> Duration {
    let begun = Instant::now();
    for _ in 0..rounds {
        crowd.ask(*next).await;
        *next += 1;
    }
    begun.elapsed()
}

fn here<C: Crowd>(criterion: &mut Criterion, name: &str, make: fn(Spawner, u32) -> C) {
    let runtime = growth::runtime();
    let mut group = growth::group(criterion, name);
    group.throughput(Throughput::Elements(1));
    for size in DECADES {
        let (local, crowd, mut next) = (LocalSet::new(), make(Spawner::CurrentThread, size), 0);
        local.block_on(&runtime, asked(&crowd, &mut next, size.into()));
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter_custom(|rounds| local.block_on(&runtime, asked(&crowd, &mut next, rounds)));
        });
    }
    group.finish();
}

fn across(criterion: &mut Criterion) {
    let system = System::new();
    let mut group = growth::group(criterion, "ask_wallet_across");
    group.throughput(Throughput::Elements(1));
    for size in DECADES {
        let arbiter = Arbiter::new();
        let (crowd, mut next) = (Rich::new(Spawner::on_arbiter(arbiter.handle()), size), 0);
        system.block_on(asked(&crowd, &mut next, size.into()));
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter_custom(|rounds| system.block_on(asked(&crowd, &mut next, rounds)));
        });
        arbiter.stop();
        arbiter.join().unwrap();
    }
    group.finish();
}

fn round_trips(criterion: &mut Criterion) {
    here(criterion, "ask_wallet_here", Rich::new);
    here(criterion, "ask_shelf_here", Stocked::new);
    across(criterion);
}

criterion_group!(benches, round_trips);
criterion_main!(benches);
