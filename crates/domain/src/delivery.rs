//! Webhook delivery data: events, targets, attempts and their outcomes.
//!
//! Of a receiver's response only status, latency and the first bytes are stored; nothing of the request.

pub mod attempt;
pub mod replay;
pub mod view;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::envelope::Envelope;
use super::event::EventBundle;
use super::event_kind::EventKind;
use super::ids::{EventId, OrderId, PartnerId, WebhookId};
use crate::labels::labels;

/// How many bytes of a receiver's response are stored (contract §10).
pub const MAX_STORED_RESPONSE_BYTES: usize = 1_024;

/// The events of one commit, shared by all their deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedEvents {
    pub partner_id: PartnerId,
    /// The partner's event number of the first event.
    pub first_number: i64,
    pub bundle: EventBundle,
    pub created_at: OffsetDateTime,
}

impl CommittedEvents {
    /// The partner's event number of the last event.
    #[must_use]
    pub fn last_number(&self) -> i64 {
        self.first_number + i64::from(self.bundle.count()) - 1
    }

    /// The id of event `number`.
    #[must_use]
    pub fn event_id(&self, number: i64) -> EventId {
        EventId::for_number(self.partner_id, number, self.created_at)
    }

    /// The kind of event `number`; `None` if it is not part of this commit.
    #[must_use]
    pub fn kind(&self, number: i64) -> Option<EventKind> {
        self.bundle.kind(self.index_of(number)?)
    }

    /// The sequence number of event `number` within its order.
    #[must_use]
    pub fn sequence(&self, number: i64) -> Option<u32> {
        self.bundle.first_sequence.checked_add(self.index_of(number)?)
    }

    /// The payload of event `number`.
    #[must_use]
    pub fn envelope(&self, number: i64) -> Option<Envelope> {
        let index = self.index_of(number)?;
        Some(Envelope {
            event: self.bundle.kind(index)?,
            event_id: self.event_id(number),
            created_at: self.created_at,
            data: self.bundle.data(index)?,
        })
    }

    fn index_of(&self, number: i64) -> Option<u32> {
        u32::try_from(number.checked_sub(self.first_number)?).ok()
    }
}

/// One event of a commit, to be delivered.
#[derive(Debug, Clone)]
pub struct WebhookEvent {
    pub events: Arc<CommittedEvents>,
    /// The partner's event number.
    pub number: i64,
}

/// A webhook secret encrypted at rest.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSecret(pub Arc<[u8]>);

impl std::fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealedSecret")
    }
}

/// URL and signing secrets of a webhook endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookTarget {
    pub partner_id: PartnerId,
    pub webhook_id: WebhookId,
    pub url: String,
    pub secret: SealedSecret,
    /// During a secret rotation: the previous secret, and until when it signs too.
    pub previous_secret: Option<(SealedSecret, OffsetDateTime)>,
}

/// The outcome of one delivery attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The receiver responded with 2xx.
    Delivered,
    /// The attempt failed; the receiver may have sent `Retry-After`.
    Failed(Option<Duration>),
    /// The receiver responded with 410 Gone.
    Gone,
}

labels! {
    /// Why an attempt got no response.
    pub enum DeliveryFault: "snake_case",
        "Why an attempt got no response: `timeout` (none within five seconds), `unresolved` (the host name has no \
         address), `forbidden` (the address is not public), `tls` (no trusted certificate), `connection` (refused, reset or \
         broken), `unreadable` (not a valid HTTP response), `internal` (a fault of the service)." {
        /// No response within the timeout.
        Timeout,
        /// The host name has no address.
        Unresolved,
        /// The host name resolves to an address that is not public.
        Forbidden,
        /// The receiver has no trusted certificate.
        Tls,
        /// The connection was refused, reset or broken.
        Connection,
        /// The response was not valid HTTP.
        Unreadable,
        /// The service failed.
        Internal,
    }
}

/// An attempt to deliver an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = DeliveryAttempt)]
pub struct DeliveryAttempt {
    /// Start of the attempt.
    #[serde(with = "super::timestamp")]
    pub at: OffsetDateTime,
    /// Duration of the attempt in milliseconds.
    pub latency_ms: u32,
    /// Status code of the response; null if there was none.
    #[schema(required)]
    pub status: Option<u16>,
    /// Why there was no response; null if there was one.
    #[schema(required)]
    pub fault: Option<DeliveryFault>,
    /// The first 1,024 bytes of the response body.
    pub answer: String,
}

/// What the sender reports about an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendResult {
    /// The status code, or why there was no response.
    pub status: Result<u16, DeliveryFault>,
    /// The delay from the receiver's `Retry-After` header.
    pub retry_after: Option<Duration>,
    /// The first bytes of the response body.
    pub body: String,
}

impl SendResult {
    /// An attempt without a response.
    #[must_use]
    pub const fn failed(fault: DeliveryFault) -> Self {
        Self {
            status: Err(fault),
            retry_after: None,
            body: String::new(),
        }
    }

    /// Classifies the result.
    #[must_use]
    pub const fn outcome(&self) -> AttemptOutcome {
        match self.status {
            Ok(200..=299) => AttemptOutcome::Delivered,
            Ok(410) => AttemptOutcome::Gone,
            _ => AttemptOutcome::Failed(self.retry_after),
        }
    }
}

/// A delivery in the queue of its endpoint. Times are monotonic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedDelivery {
    /// The partner's event number.
    pub number: i64,
    pub order_id: OrderId,
    /// Failed attempts so far.
    pub attempts: u32,
    /// How often it had been replayed when it was read.
    pub replays: u32,
    /// Whether the store has a row for it.
    pub has_row: bool,
    pub due_at: Duration,
    /// The time of the last attempt.
    pub give_up_at: Duration,
}

impl QueuedDelivery {
    /// Returns the delivery with one more failed attempt.
    #[must_use]
    pub const fn after_failure(self) -> Self {
        Self {
            attempts: self.attempts + 1,
            ..self
        }
    }

    /// The update that records `outcome`.
    #[must_use]
    pub const fn update(&self, outcome: DeliveryOutcome) -> DeliveryUpdate {
        DeliveryUpdate {
            number: self.number,
            order_id: self.order_id,
            attempts: self.attempts,
            replays: self.replays,
            outcome,
        }
    }
}

/// An update to the stored state of one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryUpdate {
    /// The partner's event number.
    pub number: i64,
    pub order_id: OrderId,
    /// Failed attempts so far.
    pub attempts: u32,
    /// The replay count that this update refers to. An update with an older count does not apply to a later
    /// replay.
    pub replays: u32,
    pub outcome: DeliveryOutcome,
}

impl DeliveryUpdate {
    /// Whether this update keeps `delivery` waiting: it is of the same order, earlier, and itself waits for
    /// an attempt. The page that `delivery` came with may have been read before this update was written.
    #[must_use]
    pub fn is_blocking(&self, delivery: &QueuedDelivery) -> bool {
        self.order_id == delivery.order_id
            && self.number < delivery.number
            && matches!(
                self.outcome,
                DeliveryOutcome::RetryAt(_) | DeliveryOutcome::Blocked
            )
    }
}

/// The new state of a delivery that has, or gets, a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Delivered,
    /// Retried at this monotonic time.
    RetryAt(Duration),
    /// Waits for an earlier event of its order.
    Blocked,
    /// Given up after the last attempt.
    Failed,
}

/// The failure state of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointHealth {
    pub consecutive_failures: u32,
    /// The attempt number that determines the current backoff.
    pub backoff_step: u32,
    /// While the endpoint fails: the earliest time of the next attempt, monotonic.
    pub not_before: Duration,
}
