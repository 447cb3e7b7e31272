//! The two ports of deliveries: where events and failed deliveries are kept, and what carries a letter to its receiver.
//!
//! Rules: an endpoint is leased to one process, and every write is made under that lease: who has lost it learns so and
//! writes nothing. A delivery that was replayed since it was read is as the replay left it, whatever is written of it: its
//! attempts alone are remembered. Times are told as spans from now, by the store's own clock: what decides is one clock's word.

use std::sync::Arc;
use std::time::Duration;

use super::queue::{Changes, Want};
use crate::domain::delivery::{Answered, Attempt, Letter, Target};
use crate::domain::ids::{OrderId, WebhookId};
use crate::store::{StoreFuture, Unavailable};

/// How long an endpoint stays with a process that says nothing.
pub const LEASE: Duration = Duration::from_secs(30);

/// Which taking of an endpoint it is: what was taken before may no longer write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease(pub i64);

/// An endpoint that was taken.
#[derive(Debug, Clone)]
pub struct Opened {
    pub lease: Lease,
    pub target: Arc<Target>,
    /// Every event up to this number was seen to.
    pub cursor: i64,
    /// Failed attempts since the last that succeeded.
    pub failures: u32,
    /// How far the gaps have grown.
    pub step: u32,
    /// While it fails: how long it is not tried.
    pub wait: Duration,
}

/// What an actor writes and asks for at once.
#[derive(Debug, Clone)]
pub struct Turn {
    pub lease: Lease,
    /// Which turn under this lease it is, from 1: one that is written again counts its attempts once.
    pub number: i64,
    /// What is to be written.
    pub changes: Changes,
    /// The moment that the times in `changes` count from.
    pub now: Duration,
    /// Attempts that failed or belong to a row, by the event's number.
    pub attempts: Vec<(i64, Attempt)>,
    /// How many attempts were taken since the last turn.
    pub delivered: u32,
    /// How many were not.
    pub refused: u32,
    /// The receiver wants nothing any more.
    pub gone: bool,
    /// How long nothing is tried, if the rows do not say.
    pub wait: Option<Duration>,
    /// Whether the cursor is written and the lease renewed; marks are written in any case.
    pub save: bool,
    /// What happens to the lease.
    pub then: Then,
}

impl Turn {
    /// Whether anything is written.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.save || self.has_rows() || self.gone || self.then == Then::Release
    }

    /// Whether rows of deliveries are written.
    #[must_use]
    pub fn has_rows(&self) -> bool {
        !self.changes.marks.is_empty() || !self.attempts.is_empty() || self.changes.recovered
    }
}

/// What happens to a lease after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It is kept, and this is read if there is room for something.
    Keep(Option<Want>),
    /// It is given back.
    Release,
}

/// A delivery as the store tells of it.
#[derive(Debug, Clone)]
pub struct Pending {
    pub letter: Letter,
    pub order_id: OrderId,
    /// Failed attempts so far.
    pub attempts: u32,
    /// How often it was replayed.
    pub replays: u32,
    /// Whether it has a row.
    pub stored: bool,
    /// Whether an earlier one of its order has a row, and waits.
    pub behind: bool,
    /// Until it is due.
    pub due_in: time::Duration,
    /// Until its last attempt.
    pub ends_in: time::Duration,
}

/// What was read.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// In the order of the numbers.
    pub pending: Vec<Pending>,
    /// Events up to here were looked at.
    pub read_to: i64,
    /// Whether there is more to read at once.
    pub more: bool,
    /// Until the next row is due, where there is one.
    pub next_due_in: Option<Duration>,
}

/// Where events and failed deliveries are kept.
pub trait Outbox: Send + Sync + 'static {
    /// Takes an endpoint; `None` where there is nothing to do for it, or another process has it.
    ///
    /// # Errors
    /// [`Unavailable`]: ask again later.
    fn take(&self, webhook_id: WebhookId) -> StoreFuture<'_, Result<Option<Opened>, Unavailable>>;

    /// Writes, and reads what is wanted; `None` when the lease is no longer this one, and nothing was written. The same
    /// turn may be written again.
    ///
    /// # Errors
    /// [`Unavailable`]: whether it was written is not known.
    fn turn(&self, webhook_id: WebhookId, turn: Turn) -> StoreFuture<'_, Result<Option<Page>, Unavailable>>;
}

/// What carries letters.
pub trait Sender: Send + Sync + 'static {
    /// Signs and sends one, and says what was answered. Whoever stops waiting for it cancels it.
    fn send(&self, target: Arc<Target>, letter: Letter) -> StoreFuture<'static, Answered>;
}
