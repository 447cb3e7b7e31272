//! Interface of an outbox under test: one endpoint, operations on it, and reads of its rows.
//!
//! Operations use the service's own statements where it has some.

use std::future::Future;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use vouchsafe_actors::delivery::outbox::Outbox;
use vouchsafe_domain::delivery::DeliveryAttempt;
use vouchsafe_domain::event_kind::EventKinds;
use vouchsafe_domain::ids::WebhookId;

/// State of a delivery that has a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowState {
    /// Waits for its next attempt.
    Waiting,
    /// Waits for an earlier delivery of its order.
    Blocked,
    Delivered,
    /// Its 24 hours are over.
    Failed,
}

/// Row of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub state: RowState,
    pub attempts: u32,
    pub log: Vec<DeliveryAttempt>,
}

/// Status of the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointStatus {
    /// Every event up to this number is delivered or has a row.
    pub cursor: i64,
    pub failures: u32,
    /// Total successful attempts.
    pub delivered: u64,
    /// Total failed attempts.
    pub refused: u64,
    pub enabled: bool,
}

/// An outbox under test: a partner without events and its only endpoint. Each case gets a new one.
pub trait OutboxSubject {
    fn webhook_id(&self) -> WebhookId;

    /// Starts a delivery process; a second start under the same name is the node's next incarnation.
    fn start(&self, node: &str) -> impl Future<Output = Arc<dyn Outbox>>;

    /// Commits an event of this order and returns its number. The first event of an order is `Created`, the others are
    /// `Processing`.
    fn commit(&self, order: u32) -> impl Future<Output = i64>;

    /// Advances the outbox's clock.
    fn advance_time(&self, by: Duration) -> impl Future<Output = ()>;

    fn replay(&self, numbers: RangeInclusive<i64>) -> impl Future<Output = ()>;

    /// Enables or disables the endpoint, as the partner does.
    fn set_enabled(&self, on: bool) -> impl Future<Output = ()>;

    /// Changes the subscribed event kinds.
    fn set_event_kinds(&self, kinds: EventKinds) -> impl Future<Output = ()>;

    /// Rotates the signing secret.
    fn rotate_secret(&self) -> impl Future<Output = ()>;

    /// Enables the endpoint, as an operator does.
    fn enable(&self) -> impl Future<Output = ()>;

    fn remove(&self) -> impl Future<Output = ()>;

    /// Reverts the last lease, like a database that crashes before the write is durable.
    fn forget_last_lease(&self) -> impl Future<Output = ()>;

    /// Delivery row of this event.
    fn row(&self, number: i64) -> impl Future<Output = Option<Row>>;

    /// Status of the endpoint; `None` after its removal.
    fn status(&self) -> impl Future<Output = Option<EndpointStatus>>;

    /// Violations of invariants, with their rows.
    fn violations(&self) -> impl Future<Output = Vec<String>>;
}
