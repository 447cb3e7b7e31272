//! What an outbox must offer to be put through the suite: one endpoint with a world around it, and a look at its rows.
//!
//! Rule: what happens to the endpoint happens as in the service: by the same statements, where there are some.

use std::future::Future;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use crate::delivery::outbox::Outbox;
use crate::domain::delivery::Attempt;
use crate::domain::event_kind::EventKinds;
use crate::domain::ids::WebhookId;

/// Where a delivery that has a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowState {
    /// It has a time at which it is tried.
    Waiting,
    /// It waits for an earlier one of its order.
    Behind,
    Delivered,
    /// Its time is over.
    Failed,
}

/// A delivery that has a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub state: RowState,
    pub attempts: u32,
    /// The attempts that are remembered.
    pub log: Vec<Attempt>,
}

/// How the endpoint is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Every event up to here was seen to.
    pub cursor: i64,
    /// Failed attempts in a row.
    pub failures: u32,
    /// Attempts that were taken, ever.
    pub delivered: u64,
    /// Attempts that were not.
    pub refused: u64,
    /// Whether it gets anything.
    pub enabled: bool,
}

/// An outbox under test: a partner that has no events yet, and its one endpoint. Each case has one of its own.
pub trait OutboxSubject {
    /// Which endpoint.
    fn webhook_id(&self) -> WebhookId;

    /// Starts a process that delivers, under this name: a later start of the same name is the same node's next life.
    fn start(&self, node: &str) -> impl Future<Output = Arc<dyn Outbox>>;

    /// Commits an event of this order and says its number: the first of an order says that it was created, the others that
    /// it is processed.
    fn commit(&self, order: u32) -> impl Future<Output = i64>;

    /// Lets so much time pass, by the outbox's clock.
    fn pass(&self, by: Duration) -> impl Future<Output = ()>;

    /// Sends these events again.
    fn replay(&self, numbers: RangeInclusive<i64>) -> impl Future<Output = ()>;

    /// The partner switches the endpoint off, or on.
    fn switch(&self, on: bool) -> impl Future<Output = ()>;

    /// The partner asks for these kinds.
    fn ask_for(&self, kinds: EventKinds) -> impl Future<Output = ()>;

    /// The partner asks for a new secret.
    fn rotate(&self) -> impl Future<Output = ()>;

    /// An operator switches it on.
    fn enable(&self) -> impl Future<Output = ()>;

    /// The partner removes it.
    fn remove(&self) -> impl Future<Output = ()>;

    /// The outbox forgets who took the endpoint last, as a database does that crashes before it has written it.
    fn forget_taking(&self) -> impl Future<Output = ()>;

    /// The row of this event.
    fn row(&self, number: i64) -> impl Future<Output = Option<Row>>;

    /// How the endpoint is doing; `None` once it is removed.
    fn standing(&self) -> impl Future<Output = Option<Standing>>;

    /// Every violation of an invariant, with its rows.
    fn violations(&self) -> impl Future<Output = Vec<String>>;
}
