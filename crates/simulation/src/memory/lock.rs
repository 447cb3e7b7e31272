//! Row locks, in the order in which transactions acquire them.

use std::collections::BTreeMap;

use vouchsafe_domain::idempotency::KeyHash;
use vouchsafe_domain::ids::{ChunkId, OrderId, PartnerId, PayoutId, StockId};
use vouchsafe_domain::ledger::WalletKey;

use super::tables::LaneId;

/// A lockable row, existing or about to be inserted. Variants are in lock order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lock {
    Lane(LaneId),
    Key(KeyHash),
    Order(OrderId),
    Payout(PayoutId),
    Wallet(WalletKey),
    Chunk(ChunkId),
    Voucher(StockId),
    /// The advisory lock of the partner's caps.
    Caps(PartnerId),
    EventNumber(PartnerId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockTimeout;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockMode {
    Exclusive,
    /// `FOR SHARE`.
    Shared,
}

#[derive(Debug, Default)]
pub(super) struct Locks {
    held: BTreeMap<Lock, Holders>,
    pub(super) waiting: usize,
}

#[derive(Debug, Clone, Copy)]
enum Holders {
    Exclusive,
    Shared(usize),
}

impl Locks {
    pub(super) fn is_held(&self, lock: &Lock) -> bool {
        self.held.contains_key(lock)
    }

    pub(super) fn try_acquire(&mut self, lock: &Lock, mode: LockMode) -> bool {
        match (self.held.get_mut(lock), mode) {
            (None, LockMode::Exclusive) => self.held.insert(lock.clone(), Holders::Exclusive).is_none(),
            (None, LockMode::Shared) => self.held.insert(lock.clone(), Holders::Shared(1)).is_none(),
            (Some(Holders::Shared(count)), LockMode::Shared) => {
                *count += 1;
                true
            }
            (Some(_), _) => false,
        }
    }

    pub(super) fn release(&mut self, lock: &Lock) {
        match self.held.get_mut(lock) {
            Some(Holders::Shared(count)) if *count > 1 => *count -= 1,
            _ => drop(self.held.remove(lock)),
        }
    }
}
