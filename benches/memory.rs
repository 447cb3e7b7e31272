//! Memory benchmark: bytes per voucher on a shelf and per idle actor.
//!
//! Reports the bytes requested from the allocator, counted by an instrumented system allocator, and the
//! growth of the resident memory, which includes rounding and tables of the allocator. Limits: 48 B per
//! voucher, 4 KiB per actor. Nothing is timed.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a bench reports to the terminal only"
)]

#[path = "parts/mod.rs"]
mod parts;

use std::alloc::System;
use std::sync::Arc;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::task::LocalSet;
use vouchsafe_actors::inventory::shelf::Shelf;
use vouchsafe_actors::inventory::{Inventory, Supply};
use vouchsafe_actors::supervisor::{DecisionDeadline, Spawner};
use vouchsafe_actors::wallet::Wallets;
use vouchsafe_actors::wallet::purse::ReserveRequest;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::voucher::Expiry;
use vouchsafe_simulation::build::{day, partner, sku, usd};

use crate::parts::always_commits::{AlwaysCommits, StockClaims};
use crate::parts::growth;
use crate::parts::stocked_shelf::{CHUNK, add_chunk};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Limit per voucher, in bytes.
const VOUCHER_LIMIT: f64 = 48.0;

/// Limit per idle actor, in bytes.
const ACTOR_LIMIT: f64 = 4_096.0;

/// Number of actors per measurement.
const ACTORS: u32 = 20_000;

/// Resident memory of this process, in bytes.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1_024
}

/// Measures the memory that `make` retains and prints it per element.
fn measure_memory<T>(name: &str, count: u32, limit: f64, make: impl FnOnce() -> T) -> T {
    let (region, before) = (Region::new(ALLOCATOR), resident_bytes());
    let value = make();
    let change = region.change();
    let allocated = change.bytes_allocated.saturating_sub(change.bytes_deallocated) as f64 / f64::from(count);
    let resident_bytes = resident_bytes().saturating_sub(before) as f64 / f64::from(count);
    let status = if allocated <= limit { "within" } else { "above" };
    println!(
        "{name:34} {count:>9}   allocated {allocated:8.1} B   resident {resident_bytes:8.1} B   {status} the limit of {limit} B"
    );
    value
}

/// Fills a shelf by claims of one chunk each. `expiry` maps a voucher number to its expiry.
fn filled_shelf(vouchers: u32, expiry: fn(i64) -> Expiry) -> Shelf {
    let mut shelf = Shelf::new();
    for id in 0..i64::from(vouchers) / CHUNK {
        add_chunk(&mut shelf, id, CHUNK, expiry);
    }
    assert_eq!(shelf.free(), usize::try_from(vouchers).unwrap());
    shelf
}

fn vouchers() {
    for size in [10_000, 100_000, 1_000_000] {
        drop(measure_memory(
            "voucher, one expiry day",
            size,
            VOUCHER_LIMIT,
            || filled_shelf(size, |_| day(0)),
        ));
        drop(measure_memory(
            "voucher, 1,000 days by chunk",
            size,
            VOUCHER_LIMIT,
            || filled_shelf(size, |number| day(number / CHUNK * 7_919 % 1_000)),
        ));
        // Worst case: no two neighbours share an expiry, so none can be stored as a run.
        drop(measure_memory(
            "voucher, all neighbours differ",
            size,
            VOUCHER_LIMIT,
            || filled_shelf(size, |number| day(number % CHUNK)),
        ));
    }
}

fn actors() {
    let runtime = growth::runtime();
    let store = || Arc::new(AlwaysCommits::new(StockClaims::Nothing));
    let local = LocalSet::new();
    let wallets = measure_memory("wallet actor, idle", ACTORS, ACTOR_LIMIT, || {
        let wallets = Wallets::new(Spawner::CurrentThread, store());
        local.block_on(&runtime, async {
            for number in 1..=ACTORS {
                let (request, deadline) = (
                    ReserveRequest::Debit(Amount::from_minor(1)),
                    DecisionDeadline::start(),
                );
                let partner_id = partner(number.into());
                drop(wallets.hold(partner_id, usd(), request, &deadline).await.unwrap());
            }
        });
        wallets
    });
    assert_eq!(wallets.totals().actors, usize::try_from(ACTORS).unwrap());
    let inventory = measure_memory("inventory actor, empty and idle", ACTORS, ACTOR_LIMIT, || {
        let inventory = Inventory::new(Spawner::CurrentThread, store());
        local.block_on(&runtime, async {
            for number in 1..=ACTORS {
                let (sku, deadline) = (sku(&format!("p-{number}"), 2_500), DecisionDeadline::start());
                let supply = inventory.hold(&sku, 1, Expiry::PAST, &deadline).await;
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
