//! What tests and benches stand on: a store in memory that behaves as Postgres does, and the suite that both must pass.
//!
//! Rule: what a test takes for granted of the store is a case of [`conformance`], and of the outbox of deliveries one of
//! [`outbox`], so that it is true of Postgres as well.

// Test support: a failed unwrap here is a failed test, and its place is what the reader wants to see.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub mod build;
pub mod conformance;
mod facts;
mod memory;
pub mod memory_outbox;
pub mod outbox;
pub mod world;

pub use facts::{Entry, Holder, Kept, Told};
pub use memory::{Backup, Fault, FaultKind, Guard, MemoryDatabase, MemoryStore, OtherTransaction, Rates};
