//! In-memory store, simulation and conformance suite for tests and benchmarks.
//!
//! Every property of the store that a test relies on is a case of [`conformance`], and Postgres passes the
//! same cases.

// Test support: a failed unwrap is a failed test, and its line says where.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub mod build;
pub mod conformance;
mod memory;
mod rows;
pub mod walk;

pub use memory::{
    Backup, Fault, FaultKind, FaultRates, FlushLatency, Guard, MemoryDatabase, MemoryStore, OtherTransaction,
};
pub use rows::{
    DeliveryRow, EndpointStatus, FeedEntry, Holder, LedgerEntry, RowState, StoredKey, StoredWallet,
};
