//! How much memory does a voucher take on the shelf, and an actor that has nothing to do?
//!
//! Two figures each: what was asked of the allocator, counted by one that wraps the system's, and what became resident, which
//! has its rounding and its tables besides. Marks: 48 B for a voucher, 4 KiB for an actor. Nothing is timed.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a bench has nobody to tell but the terminal"
)]

#[path = "parts/growth.rs"]
#[allow(dead_code, reason = "shared with other benches")]
mod growth;
#[path = "parts/yes_store.rs"]
#[allow(dead_code, reason = "shared with other benches")]
mod yes_store;

use std::alloc::System;
use std::sync::Arc;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::task::LocalSet;
use vouchsafe_actors::domain::ids::{ChunkId, StockId};
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::domain::stock::{ClaimedChunk, ClaimedStock, UnclaimableStock};
use vouchsafe_actors::domain::voucher::Expiry;
use vouchsafe_actors::inventory::shelf::Shelf;
use vouchsafe_actors::inventory::{Inventory, Supply};
use vouchsafe_actors::supervisor::{DecisionDeadline, Spawner};
use vouchsafe_actors::testing::build::{day, partner, sku, usd};
use vouchsafe_actors::wallet::Wallets;
use vouchsafe_actors::wallet::purse::ReserveRequest;

use crate::yes_store::{Claims, YesStore};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Most that a voucher on the shelf may take. Bytes.
const VOUCHER_MARK: f64 = 48.0;

/// Most that an idle actor may take. Bytes.
const ACTOR_MARK: f64 = 4_096.0;

/// How many actors are counted together.
const ACTORS: u32 = 20_000;

/// Vouchers of a chunk, as an import forms them.
const CHUNK: i64 = 500;

/// Bytes in memory of this process.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1_024
}

/// Counts what `make` leaves behind, and prints it for one of `count`.
fn count<T>(what: &str, count: u32, mark: f64, make: impl FnOnce() -> T) -> T {
    let (region, before) = (Region::new(ALLOCATOR), resident());
    let made = make();
    let change = region.change();
    let asked = change.bytes_allocated.saturating_sub(change.bytes_deallocated) as f64 / f64::from(count);
    let resident = resident().saturating_sub(before) as f64 / f64::from(count);
    let verdict = if asked <= mark { "within" } else { "above" };
    println!(
        "{what:34} {count:>9}   asked for {asked:8.1} B   resident {resident:8.1} B   {verdict} the mark of {mark} B"
    );
    made
}

/// A shelf as claims of stock make it, a chunk after the other. `expiry` is asked with a voucher's number.
fn shelved(vouchers: u32, expiry: fn(i64) -> Expiry) -> Shelf {
    let mut shelf = Shelf::new();
    for id in 0..i64::from(vouchers) / CHUNK {
        let chunk = ClaimedChunk {
            chunk_id: ChunkId(id),
            vouchers: (0..CHUNK)
                .map(|n| id * CHUNK + n)
                .map(|number| (StockId(number), expiry(number)))
                .collect(),
        };
        let claimed = ClaimedStock {
            chunks: vec![chunk],
            next_expiry: None,
            unclaimable: UnclaimableStock::None,
        };
        shelf.start_claim();
        shelf.add_claimed(&claimed, Expiry::PAST);
    }
    assert_eq!(shelf.free(), usize::try_from(vouchers).unwrap());
    shelf
}

fn vouchers() {
    for size in [10_000, 100_000, 1_000_000] {
        drop(count("voucher, all of one day", size, VOUCHER_MARK, || {
            shelved(size, |_| day(0))
        }));
        drop(count("voucher, chunks of 1,000 days", size, VOUCHER_MARK, || {
            shelved(size, |number| day(number / CHUNK * 7_919 % 1_000))
        }));
        // The worst there is: no two that could be kept as one.
        drop(count(
            "voucher, neighbours of other days",
            size,
            VOUCHER_MARK,
            || shelved(size, |number| day(number % CHUNK)),
        ));
    }
}

fn actors() {
    let runtime = growth::runtime();
    let store = || Arc::new(YesStore::new(Claims::Nothing));
    let local = LocalSet::new();
    let wallets = count("wallet actor, idle", ACTORS, ACTOR_MARK, || {
        let wallets = Wallets::new(Spawner::CurrentThread, store());
        local.block_on(&runtime, async {
            for number in 1..=ACTORS {
                let (wish, patience) = (ReserveRequest::Debit(Amount::from_minor(1)), DecisionDeadline::start());
                let partner_id = partner(number.into());
                drop(
                    wallets
                        .hold(partner_id, usd(), wish, &patience)
                        .await
                        .unwrap(),
                );
            }
        });
        wallets
    });
    assert_eq!(wallets.totals().actors, usize::try_from(ACTORS).unwrap());
    let inventory = count("inventory actor, empty and idle", ACTORS, ACTOR_MARK, || {
        let inventory = Inventory::new(Spawner::CurrentThread, store());
        local.block_on(&runtime, async {
            for number in 1..=ACTORS {
                let (sku, patience) = (sku(&format!("p-{number}"), 2_500), DecisionDeadline::start());
                let supply = inventory.hold(&sku, 1, Expiry::PAST, &patience).await;
                assert!(matches!(supply, Ok(Supply::SoldOut(0))), "{supply:?}");
            }
        });
        inventory
    });
    assert_eq!(inventory.totals().actors, usize::try_from(ACTORS).unwrap());
}

fn main() {
    vouchers();
    actors();
}
