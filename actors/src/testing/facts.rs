//! What a test reads back from a store, row by row.
//!
//! Rule: committed rows only, and nothing that two stores may keep differently.

use crate::domain::answer::KnownAnswer;
use crate::domain::event::EventBundle;
use crate::domain::ids::OrderId;
use crate::domain::ledger::{Movement, Receipt};

/// Who has a voucher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    Order(OrderId),
    /// Nobody any more: an operator took it out.
    Void,
}

/// A row of the ledger: the movement as it was asked for, and what the commit made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number in the wallet, and what the wallet held after it.
    pub after: Receipt,
    pub movement: Movement,
}

/// A row of the idempotency keys, expired or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Of which request, and what it was answered.
    pub known: KnownAnswer,
    /// Whether it has no end.
    pub for_ever: bool,
}

/// A row of events: a bundle, with the partner's number of its first event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The first event's number; the bundle takes as many as it has events.
    pub number: i64,
    pub bundle: EventBundle,
}
