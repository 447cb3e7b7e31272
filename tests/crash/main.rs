//! Crash tests: `kill -9` against the real program on its durable private Postgres. Clients record every
//! response, and afterwards the database must match the record.
//!
//! No assertion depends on timing: a pause only decides when a fault is injected.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "tests panic on failure and print their figures"
)]

mod checks;
mod client;
mod controls;
mod durability_control;
mod fixtures;
mod history;
mod invariants;
mod lifecycle;
mod load_session;
mod node_pair;
mod operator;
mod processes;
mod resolution;
mod restart;
mod rng;
mod rounds;
mod stale_lock;
mod tally;
mod two_nodes;

use parking_lot::{Mutex, MutexGuard};

/// Serializes the tests of this binary: each needs both cores for its load.
fn lock_test_turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock()
}

/// Runs a test. Its clients run on worker threads, so the test itself may block on processes.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test);
}
