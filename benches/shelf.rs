//! Benchmark of the shelf by stock in memory.
//!
//! `shelf_sold` measures hold and settle, including the share of a claim that replaces a sold chunk;
//! `shelf_released` measures hold and release. The shelf contains 100 to a million vouchers with 1,000 expiry
//! days; with `VOUCHSAFE_BENCH_LARGEST` also ten million, which take long to load.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench may panic")]

#[path = "parts/mod.rs"]
mod parts;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use vouchsafe_actors::inventory::shelf::{Shelf, ShelfDecision};
use vouchsafe_domain::voucher::{Expiry, StockVoucher};
use vouchsafe_simulation::build::day;

use crate::parts::growth;
use crate::parts::stocked_shelf::{CHUNK, add_chunk};

/// Vouchers in memory.
const SIZES: [i64; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];

/// Optional largest size.
const LARGEST: i64 = 10_000_000;

/// Number of expiry days.
const DAYS: i64 = 1_000;

/// A stocked shelf and the number of its next chunk.
struct StockedShelf {
    shelf: Shelf,
    chunk: i64,
    next: i64,
    sold: i64,
}

impl StockedShelf {
    fn with(size: i64) -> Self {
        let mut shelf = Self {
            shelf: Shelf::new(),
            // A small shelf has two chunks.
            chunk: CHUNK.min(size / 2),
            next: 0,
            sold: 0,
        };
        while shelf.shelf.free() < usize::try_from(size).unwrap() {
            shelf.claim();
        }
        shelf
    }

    fn claim(&mut self) {
        let id = self.next;
        self.next += 1;
        let expiry = day(id % DAYS);
        add_chunk(&mut self.shelf, id, self.chunk, |_| expiry);
    }

    fn hold(&mut self) -> Vec<StockVoucher> {
        match self.shelf.hold(1, Expiry::PAST, true) {
            ShelfDecision::Held(vouchers) => vouchers,
            other => panic!("{other:?}"),
        }
    }

    /// Sells one voucher; claims a new chunk after each sold chunk.
    fn sell(&mut self) {
        let held = self.hold();
        self.shelf.settle(black_box(&held));
        self.sold += 1;
        if self.sold % self.chunk == 0 {
            self.claim();
        }
    }

    fn release(&mut self) {
        let held = self.hold();
        self.shelf.release(black_box(&held));
    }
}

fn sizes() -> impl Iterator<Item = i64> {
    let largest = std::env::var_os("VOUCHSAFE_BENCH_LARGEST").map(|_| LARGEST);
    SIZES.into_iter().chain(largest)
}

fn measure(criterion: &mut Criterion, name: &str, step: fn(&mut StockedShelf)) {
    let mut group = growth::group(criterion, name);
    group.throughput(Throughput::Elements(1));
    for size in sizes() {
        let mut shelf = StockedShelf::with(size);
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| step(&mut shelf));
        });
    }
    group.finish();
}

fn shelf(criterion: &mut Criterion) {
    measure(criterion, "shelf_sold", StockedShelf::sell);
    measure(criterion, "shelf_released", StockedShelf::release);
}

criterion_group!(benches, shelf);
criterion_main!(benches);
