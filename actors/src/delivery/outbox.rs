//! Ports of webhook delivery: the outbox (stored events and deliveries), the sender and the log of attempts.
//!
//! An endpoint is leased to one process, and every write carries that lease: a process that lost the lease
//! writes nothing and learns so. A delivery that was replayed after it was read keeps the state that the
//! replay set; only its attempts are recorded. Times are durations relative to the store's clock, so that a
//! single clock decides.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;
use vouchsafe_domain::delivery::attempt::EndedAttempt;
use vouchsafe_domain::delivery::{DeliveryAttempt, SendResult, WebhookEvent, WebhookTarget};
use vouchsafe_domain::ids::{OrderId, WebhookId};

use super::queue::{QueueChanges, ReadRequest};
use crate::ports::store::StoreFuture;
use vouchsafe_domain::store_error::Unavailable;

/// How long a lease lasts without renewal.
pub const LEASE_DURATION: Duration = Duration::from_secs(30);

/// A lease's fencing token: writes under an earlier lease, or after the store may have lost commits, are
/// rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    pub number: i64,
    /// Changes when the store may have lost commits.
    pub history: Uuid,
}

#[derive(Debug, Clone)]
pub struct LeasedEndpoint {
    pub lease: Lease,
    pub target: Arc<WebhookTarget>,
    /// Every event up to this number is delivered, has a row, or was not subscribed to.
    pub cursor: i64,
    /// A retry was requested for the events up to this number: they are attempted even while the endpoint
    /// fails.
    pub retry_to: i64,
    pub consecutive_failures: u32,
    /// The attempt number that determines the current backoff.
    pub backoff_step: u32,
    /// While the endpoint fails: time until the next attempt.
    pub retry_in: Duration,
}

/// A write and a read in one request.
#[derive(Debug, Clone)]
pub struct FlushRequest {
    pub lease: Lease,
    /// Number of the flush under this lease, from 1. A repeated flush counts its attempts once.
    pub sequence: i64,
    pub changes: QueueChanges,
    /// The time that the times in `changes` are relative to.
    pub now: Duration,
    /// Attempts that failed or belong to a row, by event number.
    pub attempts: Vec<(i64, DeliveryAttempt)>,
    /// Successful attempts since the last flush.
    pub delivered: u32,
    /// Failed attempts since the last flush.
    pub failed: u32,
    /// The receiver responded with 410 Gone.
    pub gone: bool,
    /// Time until the next attempt, if the rows do not determine it.
    pub retry_in: Option<Duration>,
    /// Whether to write the cursor and renew the lease. Updates are always written.
    pub save_cursor: bool,
    pub lease_action: LeaseAction,
}

impl FlushRequest {
    /// Whether the flush writes anything.
    #[must_use]
    pub fn has_writes(&self) -> bool {
        self.save_cursor || self.has_row_writes() || self.gone || self.lease_action == LeaseAction::Release
    }

    /// Whether the flush writes delivery rows.
    #[must_use]
    pub fn has_row_writes(&self) -> bool {
        !self.changes.updates.is_empty() || !self.attempts.is_empty() || self.changes.recovered
    }
}

/// What to do with the lease after a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseAction {
    /// Keep it, and read the next deliveries if the queue has room.
    Keep(Option<ReadRequest>),
    Release,
}

/// A delivery as the store returns it.
#[derive(Debug, Clone)]
pub struct PendingDelivery {
    pub event: WebhookEvent,
    pub order_id: OrderId,
    /// Failed attempts so far.
    pub attempts: u32,
    /// How often it was replayed.
    pub replays: u32,
    /// Whether it has a row.
    pub has_row: bool,
    /// Whether it waits for an earlier event of its order that has a row.
    pub is_blocked: bool,
    /// Time until it is due.
    pub due_in: time::Duration,
    /// Time until its last attempt.
    pub give_up_in: time::Duration,
}

/// The deliveries that a flush read.
#[derive(Debug, Clone, Default)]
pub struct DeliveryPage {
    /// Sorted by event number.
    pub pending: Vec<PendingDelivery>,
    /// The number of the last event that was scanned.
    pub scanned_to: i64,
    /// Whether more can be read at once.
    pub has_more: bool,
    /// Time until the next row is due, if there is one.
    pub next_due_in: Option<Duration>,
    /// A retry was requested for the events up to this number.
    pub retry_to: i64,
}

/// Storage of events and deliveries.
pub trait Outbox: Send + Sync + 'static {
    /// Leases an endpoint; `None` if it has nothing to deliver or another process has the lease.
    ///
    /// # Errors
    /// [`Unavailable`]: retry later.
    fn lease(&self, webhook_id: WebhookId) -> StoreFuture<'_, Result<Option<LeasedEndpoint>, Unavailable>>;

    /// Writes and reads in one request; `None`, with nothing written, if the lease has been lost. Idempotent
    /// per flush.
    ///
    /// # Errors
    /// [`Unavailable`]: it is unknown whether the flush was written.
    fn flush(
        &self,
        webhook_id: WebhookId,
        flush: FlushRequest,
    ) -> StoreFuture<'_, Result<Option<DeliveryPage>, Unavailable>>;
}

/// Sends webhooks.
pub trait Sender: Send + Sync + 'static {
    /// Signs and sends an event and returns the response. Dropping the future cancels the request.
    fn send(&self, target: Arc<WebhookTarget>, event: WebhookEvent) -> StoreFuture<'static, SendResult>;
}

/// Log of delivery attempts.
pub trait AttemptLog: Send + Sync + 'static {
    /// Adds an attempt. Never waits: an attempt that cannot be logged is dropped and counted.
    fn record(&self, attempt: EndedAttempt);
}
