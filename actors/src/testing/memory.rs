//! A store in memory that behaves as Postgres does, as far as the engine can tell: locks, waits, verdicts, faults.
//!
//! Rule: it is not kinder than Postgres. Whatever Postgres may refuse, lose or answer late, it refuses, loses and
//! answers late; `conformance` holds both to the same cases. Everything is in order, so one seed gives one history.

mod claim;
mod commit;
mod fault;
mod guard;
mod invariants;
mod lane;
mod lock;
mod operate;
mod read;
mod state;
mod store;
mod subject;
mod tables;
mod wait;

use std::sync::Arc;

pub use fault::{Fault, FaultKind, Rates};
pub use guard::Guard;
pub use operate::{Backup, OtherTransaction};
pub use store::MemoryStore;

/// A database in memory; its clones are handles of the same one.
#[derive(Debug, Clone)]
pub struct MemoryDatabase {
    shared: Arc<state::Shared>,
}
