//! What one lock of the process protects: the tables, the row locks, and which guards stand.
//!
//! Rule: it is never held across an await; a wait is a row lock, and told to whoever waits for it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::MemoryDatabase;
use super::fault::Faults;
use super::guard::Guard;
use super::lock::Locks;
use super::tables::{DbTime, Tables};

/// What the database's clock shows when it is made: far enough from zero that a key can be made older than a day.
const CLOCK_START: Duration = Duration::from_secs(1_000 * 24 * 60 * 60);

/// The database's insides.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) tables: Tables,
    pub(super) locks: Locks,
    removed: BTreeSet<Guard>,
}

impl State {
    /// Whether the commit verifies this.
    pub(super) fn verifies(&self, guard: Guard) -> bool {
        !self.removed.contains(&guard)
    }
}

/// What all handles of one database share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) faults: Mutex<Faults>,
    pub(super) freed: Notify,
    /// A transaction began to wait.
    pub(super) blocked: Notify,
    made_at: Instant,
}

impl MemoryDatabase {
    /// An empty database. Its clock is tokio's, so that paused time is its time too.
    #[must_use]
    pub fn new() -> Self {
        Self::with_state(State::default())
    }

    /// An empty database whose commit does not verify one thing: for tests that must notice it.
    #[must_use]
    pub fn without(guard: Guard) -> Self {
        Self::with_state(State {
            removed: BTreeSet::from([guard]),
            ..State::default()
        })
    }

    fn with_state(state: State) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                faults: Mutex::new(Faults::default()),
                freed: Notify::new(),
                blocked: Notify::new(),
                made_at: Instant::now(),
            }),
        }
    }

    pub(super) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        // A test that panicked inside has failed already; the rollbacks behind it still run.
        act(&mut self.shared.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn now(&self) -> DbTime {
        DbTime(CLOCK_START + self.shared.made_at.elapsed())
    }
}

impl Default for MemoryDatabase {
    fn default() -> Self {
        Self::new()
    }
}
