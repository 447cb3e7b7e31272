//! How transactions stand in each other's way: row locks, held until the end, waited for, and given back at a rollback.
//!
//! Rule: locks are taken in one order, the order of [`Lock`]; a transaction that is dropped was rolled back.

use std::collections::BTreeMap;

use tokio::time::{Duration, Instant, timeout_at};

use super::MemoryDatabase;
use super::state::State;
use super::tables::LaneId;
use crate::domain::answer::KeyHash;
use crate::domain::ids::{ChunkId, OrderId, PartnerId, PayoutId, StockId};
use crate::domain::ledger::WalletKey;

/// How long a transaction waits for a lock before the server ends it, as the service sets `lock_timeout`.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// A row that can be locked, existing or about to be inserted; in the order in which they are taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lock {
    Lane(LaneId),
    Key(KeyHash),
    Order(OrderId),
    Payout(PayoutId),
    Wallet(WalletKey),
    Chunk(ChunkId),
    Voucher(StockId),
    EventNumber(PartnerId),
}

/// A lock was not to be had in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockTimeout;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Exclusive,
    /// `FOR SHARE`: with others of its kind.
    Shared,
}

/// Who holds what.
#[derive(Debug, Default)]
pub(super) struct Locks {
    held: BTreeMap<Lock, Holders>,
    /// How many transactions wait now.
    pub(super) waiting: usize,
}

#[derive(Debug, Clone, Copy)]
enum Holders {
    One,
    Sharing(usize),
}

impl Locks {
    /// Whether anybody holds it.
    pub(super) fn is_held(&self, lock: &Lock) -> bool {
        self.held.contains_key(lock)
    }

    fn take(&mut self, lock: &Lock, mode: Mode) -> bool {
        match (self.held.get_mut(lock), mode) {
            (None, Mode::Exclusive) => self.held.insert(lock.clone(), Holders::One).is_none(),
            (None, Mode::Shared) => self.held.insert(lock.clone(), Holders::Sharing(1)).is_none(),
            (Some(Holders::Sharing(count)), Mode::Shared) => {
                *count += 1;
                true
            }
            (Some(_), _) => false,
        }
    }

    fn release(&mut self, lock: &Lock) {
        match self.held.get_mut(lock) {
            Some(Holders::Sharing(count)) if *count > 1 => *count -= 1,
            _ => drop(self.held.remove(lock)),
        }
    }
}

/// A transaction: it sees what is committed, and changes it only at its end.
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

    /// Waits until the row is this transaction's alone.
    pub(super) async fn lock(&mut self, lock: Lock) -> Result<(), LockTimeout> {
        self.take(lock, Mode::Exclusive).await
    }

    /// Waits until nobody changes the row, and keeps it so.
    pub(super) async fn share(&mut self, lock: Lock) -> Result<(), LockTimeout> {
        self.take(lock, Mode::Shared).await
    }

    async fn take(&mut self, lock: Lock, mode: Mode) -> Result<(), LockTimeout> {
        let in_order = self.held.last().is_none_or(|last| *last < lock);
        assert!(
            in_order,
            "locks are taken in one order, or two writers deadlock: {lock:?} after {:?}",
            self.held
        );
        self.db
            .wait_for(|state| state.locks.take(&lock, mode).then_some(()))
            .await?;
        self.held.push(lock);
        Ok(())
    }

    /// What is committed, as it stands under this transaction's locks.
    pub(super) fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        self.db.with(|state| read(state))
    }

    /// Writes, and ends the transaction.
    pub(super) fn commit<T>(self, write: impl FnOnce(&mut State) -> T) -> T {
        self.db.with(write)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.db
            .with(|state| self.held.iter().for_each(|lock| state.locks.release(lock)));
        self.db.shared.freed.notify_waiters();
    }
}

impl MemoryDatabase {
    /// Tries until `attempt` succeeds, again whenever a transaction ends.
    async fn wait_for<T>(&self, mut attempt: impl FnMut(&mut State) -> Option<T>) -> Result<T, LockTimeout> {
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            // Registered before the attempt: a transaction that ends in between is not missed.
            let freed = self.shared.freed.notified();
            if let Some(taken) = self.with(&mut attempt) {
                return Ok(taken);
            }
            let _waiting = Waiting::begin(self);
            timeout_at(deadline, freed).await.map_err(|_| LockTimeout)?;
        }
    }

    /// Returns once so many transactions wait for a lock.
    pub async fn until_waiting(&self, transactions: usize) {
        loop {
            let blocked = self.shared.blocked.notified();
            if self.with(|state| state.locks.waiting) >= transactions {
                return;
            }
            blocked.await;
        }
    }
}

/// Counts a transaction as waiting while it lives.
struct Waiting<'a>(&'a MemoryDatabase);

impl<'a> Waiting<'a> {
    fn begin(db: &'a MemoryDatabase) -> Self {
        db.with(|state| state.locks.waiting += 1);
        db.shared.blocked.notify_waiters();
        Self(db)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.with(|state| state.locks.waiting -= 1);
    }
}
