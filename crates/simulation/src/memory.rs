//! In-memory store with the transaction semantics of Postgres: row locks, blocking, verdicts, injected
//! faults.
//!
//! It rejects, loses and delays whatever Postgres may; `conformance` runs the same cases against both.
//! Iteration order is deterministic, so one seed reproduces one run.

mod batch;
mod claim;
mod clock;
mod commit;
mod demands;
mod endpoint;
mod fault;
mod feed;
mod guard;
mod invariants;
mod lane;
mod lock;
mod operate;
mod outbox;
mod owner;
mod read;
mod reservations;
mod state;
mod store;
mod subject;
mod tables;
mod transaction;

use std::sync::Arc;

pub use fault::{Fault, FaultKind, FaultRates, FlushLatency};
pub use guard::Guard;
pub use operate::{Backup, OtherTransaction};
pub use store::MemoryStore;

/// An in-memory database; clones are handles to the same database.
#[derive(Debug, Clone)]
pub struct MemoryDatabase {
    shared: Arc<state::Shared>,
}
