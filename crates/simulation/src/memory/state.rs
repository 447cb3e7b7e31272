//! Shared state of the in-memory database behind one mutex: tables, row locks, removed guards.
//!
//! The mutex is never held across an await; waiting uses row locks and notifications.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use super::MemoryDatabase;
use super::fault::FaultInjector;
use super::guard::Guard;
use super::lock::Locks;
use super::tables::{DbTime, Tables};

/// Initial time of the database's clock: far enough from zero that a key can be aged by more than a day.
const CLOCK_START: Duration = Duration::from_secs(1_000 * 24 * 60 * 60);

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) tables: Tables,
    pub(super) locks: Locks,
    pub(super) removed_guards: BTreeSet<Guard>,
    /// How often a backup was restored.
    pub(super) discontinuities: u64,
}

impl State {
    /// Changes when commits may be lost.
    pub(super) fn history(&self) -> Uuid {
        Uuid::from_u128(self.discontinuities.into())
    }

    /// Whether the commit verifies this guard.
    pub(super) fn has_guard(&self, guard: Guard) -> bool {
        !self.removed_guards.contains(&guard)
    }
}

#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) faults: Mutex<FaultInjector>,
    pub(super) lock_released: Notify,
    pub(super) transaction_blocked: Notify,
    created_at: Instant,
}

impl MemoryDatabase {
    /// An empty database. Its clock is tokio's, so it follows paused time.
    #[must_use]
    pub fn new() -> Self {
        Self::with_state(State::default())
    }

    /// An empty database with one guard of the commit removed.
    #[must_use]
    pub fn without(guard: Guard) -> Self {
        Self::with_state(State {
            removed_guards: BTreeSet::from([guard]),
            ..State::default()
        })
    }

    fn with_state(state: State) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                faults: Mutex::new(FaultInjector::default()),
                lock_released: Notify::new(),
                transaction_blocked: Notify::new(),
                created_at: Instant::now(),
            }),
        }
    }

    pub(super) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        // A test that panicked under the lock has failed already; rollbacks still have to run.
        act(&mut self.shared.state.lock())
    }

    pub(super) fn now(&self) -> DbTime {
        DbTime(CLOCK_START + self.shared.created_at.elapsed())
    }
}

impl Default for MemoryDatabase {
    fn default() -> Self {
        Self::new()
    }
}
