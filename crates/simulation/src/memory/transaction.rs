//! Transactions with row locks that are held to the end, block others, and are released at rollback.
//!
//! Locks are acquired in the order of [`Lock`], which excludes deadlocks. Dropping a transaction rolls it
//! back.

use tokio::time::{Duration, Instant, timeout_at};

use super::MemoryDatabase;
use super::lock::{Lock, LockMode, LockTimeout};
use super::state::State;

/// Maximum wait for a lock, like the service's `lock_timeout`.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// A transaction. It reads committed rows and writes only at its end.
pub(super) struct Transaction {
    db: MemoryDatabase,
    held: Vec<Lock>,
}

impl Transaction {
    pub(super) fn begin(db: &MemoryDatabase) -> Self {
        Self {
            db: db.clone(),
            held: Vec::new(),
        }
    }

    pub(super) async fn lock(&mut self, lock: Lock, mode: LockMode) -> Result<(), LockTimeout> {
        let in_order = self.held.last().is_none_or(|last| *last < lock);
        assert!(
            in_order,
            "locks must be acquired in order: {lock:?} after {:?}",
            self.held
        );
        self.db
            .retry_until_acquired(|state| state.locks.try_acquire(&lock, mode).then_some(()))
            .await?;
        self.held.push(lock);
        Ok(())
    }

    /// Reads committed rows under this transaction's locks.
    pub(super) fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        self.db.with(|state| read(state))
    }

    /// Writes and ends the transaction.
    pub(super) fn commit<T>(self, write: impl FnOnce(&mut State) -> T) -> T {
        self.db.with(write)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.db
            .with(|state| self.held.iter().for_each(|lock| state.locks.release(lock)));
        self.db.shared.lock_released.notify_waiters();
    }
}

impl MemoryDatabase {
    /// Retries `attempt` whenever a transaction ends, until it succeeds.
    async fn retry_until_acquired<T>(
        &self,
        mut attempt: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<T, LockTimeout> {
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            // Registered before the attempt, so that a transaction ending in between is not missed.
            let released = self.shared.lock_released.notified();
            if let Some(acquired) = self.with(&mut attempt) {
                return Ok(acquired);
            }
            let _waiting = BlockedGuard::begin(self);
            timeout_at(deadline, released).await.map_err(|_| LockTimeout)?;
        }
    }

    /// Returns when at least `transactions` transactions are blocked on a lock.
    pub async fn wait_for_blocked(&self, transactions: usize) {
        loop {
            let blocked = self.shared.transaction_blocked.notified();
            if self.with(|state| state.locks.waiting) >= transactions {
                return;
            }
            blocked.await;
        }
    }
}

/// Counts a transaction as blocked during its lifetime.
struct BlockedGuard<'a>(&'a MemoryDatabase);

impl<'a> BlockedGuard<'a> {
    fn begin(db: &'a MemoryDatabase) -> Self {
        db.with(|state| state.locks.waiting += 1);
        db.shared.transaction_blocked.notify_waiters();
        Self(db)
    }
}

impl Drop for BlockedGuard<'_> {
    fn drop(&mut self) {
        self.0.with(|state| state.locks.waiting -= 1);
    }
}
