//! What does a voucher cost on the shelf, and how does that grow with the stock in memory?
//!
//! `sold` is a hold that is settled, with its share of the claim that replaces a chunk; `released` is a hold that is
//! given back. The shelf has from a hundred to a million vouchers, of 1,000 days of expiry; with
//! `VOUCHSAFE_BENCH_LARGEST` also ten million, which take their time to be shelved.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a bench has nobody to tell, and ends where it cannot go on"
)]

#[path = "parts/growth.rs"]
mod growth;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use vouchsafe_actors::domain::ids::{ChunkId, StockId};
use vouchsafe_actors::domain::stock::{ClaimedChunk, ClaimedStock, UnclaimableStock};
use vouchsafe_actors::domain::voucher::{Expiry, StockVoucher};
use vouchsafe_actors::inventory::shelf::{Shelf, ShelfDecision};
use vouchsafe_actors::testing::build::day;

/// How many vouchers are in memory.
const SIZES: [i64; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];

/// One that a machine with little time does without.
const LARGEST: i64 = 10_000_000;

/// Vouchers of a chunk, as an import forms them; a small shelf has two chunks.
const CHUNK: i64 = 500;

/// Days on which vouchers expire.
const DAYS: i64 = 1_000;

/// A shelf with so many vouchers, and the number of its next chunk.
struct Stocked {
    shelf: Shelf,
    chunk: i64,
    next: i64,
    sold: i64,
}

impl Stocked {
    fn with(size: i64) -> Self {
        let mut stocked = Self {
            shelf: Shelf::new(),
            chunk: CHUNK.min(size / 2),
            next: 0,
            sold: 0,
        };
        while stocked.shelf.free() < usize::try_from(size).unwrap() {
            stocked.claim();
        }
        stocked
    }

    fn claim(&mut self) {
        let id = self.next;
        self.next += 1;
        let expiry = day(id % DAYS);
        let chunk = ClaimedChunk {
            chunk_id: ChunkId(id),
            vouchers: (0..self.chunk)
                .map(|n| (StockId(id * CHUNK + n), expiry))
                .collect(),
        };
        let claimed = ClaimedStock {
            chunks: vec![chunk],
            next_expiry: None,
            unclaimable: UnclaimableStock::None,
        };
        self.shelf.start_claim();
        self.shelf.add_claimed(&claimed, Expiry::PAST);
    }

    fn hold(&mut self) -> Vec<StockVoucher> {
        match self.shelf.hold(1, Expiry::PAST, true) {
            ShelfDecision::Held(vouchers) => vouchers,
            other => panic!("{other:?}"),
        }
    }

    /// Sells one; a chunk's worth is replaced by a chunk.
    fn sell(&mut self) {
        let held = self.hold();
        self.shelf.settle(black_box(&held));
        self.sold += 1;
        if self.sold % self.chunk == 0 {
            self.claim();
        }
    }

    fn give_back(&mut self) {
        let held = self.hold();
        self.shelf.release(black_box(&held));
    }
}

fn sizes() -> impl Iterator<Item = i64> {
    let largest = std::env::var_os("VOUCHSAFE_BENCH_LARGEST").map(|_| LARGEST);
    SIZES.into_iter().chain(largest)
}

fn measure(criterion: &mut Criterion, name: &str, step: fn(&mut Stocked)) {
    let mut group = growth::group(criterion, name);
    group.throughput(Throughput::Elements(1));
    for size in sizes() {
        let mut stocked = Stocked::with(size);
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| step(&mut stocked));
        });
    }
    group.finish();
}

fn shelf(criterion: &mut Criterion) {
    measure(criterion, "shelf_sold", Stocked::sell);
    measure(criterion, "shelf_released", Stocked::give_back);
}

criterion_group!(benches, shelf);
criterion_main!(benches);
