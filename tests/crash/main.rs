//! What is left of an order when processes are killed? The real program, its durable private Postgres, and partners who
//! write down what they were told.
//!
//! Nothing here rests on time passing: a pause only decides when something strikes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test ends where it cannot go on, and tells what it counted"
)]

mod rng;
mod durability_control;
mod client;
mod resolution;
mod controls;
mod load_session;
mod invariants;
mod stale_lock;
mod lifecycle;
mod operator;
mod processes;
mod program;
mod restart;
mod rounds;
mod tally;
mod two_nodes;
mod checks;
mod fixtures;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The tests of this binary take turns: each measures, and needs both cores for its load.
fn lock_test_turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a test; its clients run on threads of their own, so that it may wait for processes as it likes.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test);
}
