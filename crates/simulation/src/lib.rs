//! In-memory store, simulation and conformance suites for tests and benchmarks.
//!
//! Every property of the store that a test relies on is a case of [`conformance`] (for the delivery outbox: of [`outbox`]),
//! and Postgres passes the same cases.

// Test support: a failed unwrap is a failed test, and its line says where.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub mod build;
pub mod conformance;
mod memory;
pub mod memory_outbox;
pub mod outbox;
mod rows;
pub mod simulation;

pub use memory::{
    Backup, Fault, FaultKind, FaultRates, Guard, MemoryDatabase, MemoryStore, OtherTransaction,
};
pub use rows::{FeedEntry, Holder, LedgerEntry, StoredKey};
