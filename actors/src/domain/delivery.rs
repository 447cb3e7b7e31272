//! Deliveries: an event on its way to an endpoint, the attempts that were made, and what became of it. Plain data.
//!
//! Rule: what is kept of an answer is its status, its time and its first bytes; nothing of what was sent.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::envelope::Envelope;
use super::event::EventBundle;
use super::event_kind::EventKind;
use super::ids::{EventId, OrderId, PartnerId, WebhookId};

/// How much of an answer is kept (contract §10). Bytes.
pub const MAX_ANSWER_BYTES: usize = 1_024;

/// The events of one commit as they are delivered: shared by every delivery of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub partner_id: PartnerId,
    /// The partner's number of the first.
    pub number: i64,
    pub bundle: EventBundle,
    /// When it was committed.
    pub created_at: OffsetDateTime,
}

impl Told {
    /// The partner's number of the last.
    #[must_use]
    pub fn last_number(&self) -> i64 {
        self.number + i64::from(self.bundle.count()) - 1
    }

    /// The id of the event with this number.
    #[must_use]
    pub fn event_id(&self, number: i64) -> EventId {
        EventId::numbered(self.partner_id, number, self.created_at)
    }

    /// The kind of the event with this number; `None` if it is not of this commit.
    #[must_use]
    pub fn kind(&self, number: i64) -> Option<EventKind> {
        self.bundle.kind(self.place(number)?)
    }

    /// The order's number of the event with this number.
    #[must_use]
    pub fn sequence(&self, number: i64) -> Option<u32> {
        self.bundle.first_sequence.checked_add(self.place(number)?)
    }

    /// The event with this number, spelled out.
    #[must_use]
    pub fn envelope(&self, number: i64) -> Option<Envelope> {
        let place = self.place(number)?;
        Some(Envelope {
            event: self.bundle.kind(place)?,
            event_id: self.event_id(number),
            created_at: self.created_at,
            data: self.bundle.tell(place)?,
        })
    }

    fn place(&self, number: i64) -> Option<u32> {
        u32::try_from(number.checked_sub(self.number)?).ok()
    }
}

/// One event of a commit, to be sent.
#[derive(Debug, Clone)]
pub struct Letter {
    pub told: Arc<Told>,
    /// Which of its events, by the partner's number.
    pub number: i64,
}

/// A secret as it is kept: sealed.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSecret(pub Arc<[u8]>);

impl std::fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealedSecret")
    }
}

/// Where deliveries of an endpoint go, and what signs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub partner_id: PartnerId,
    pub webhook_id: WebhookId,
    pub url: String,
    pub secret: SealedSecret,
    /// What signs besides until this moment, during a rotation.
    pub previous: Option<(SealedSecret, OffsetDateTime)>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The receiver took it.
    Delivered,
    /// It did not, and may have said when to come again.
    Refused(Option<Duration>),
    /// It wants nothing any more (410).
    Gone,
}

/// Why an attempt got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(
    as = DeliveryFault,
    description = "Why an attempt got no answer: `timeout` (none within five seconds), `unresolved` (the host has no \
    address), `forbidden` (an address that is not public), `tls` (no certificate that is trusted), `connection` (refused, \
    reset or broken), `unreadable` (what came is no HTTP), `internal` (a fault on this side)."
)]
pub enum Fault {
    /// None within the time for it.
    Timeout,
    /// The host has no address.
    Unresolved,
    /// The host has an address that is not public.
    Forbidden,
    /// No certificate that is trusted.
    Tls,
    /// Refused, reset or broken.
    Connection,
    /// What came is no HTTP.
    Unreadable,
    /// A fault on this side.
    Internal,
}

/// One attempt, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = DeliveryAttempt)]
pub struct Attempt {
    /// When it began.
    #[serde(with = "super::moment")]
    pub at: OffsetDateTime,
    /// How long it took.
    pub latency_ms: u32,
    /// The status of the answer; null if there was none.
    #[schema(required)]
    pub status: Option<u16>,
    /// Why there was no answer; null if there was one.
    #[schema(required)]
    pub fault: Option<Fault>,
    /// The first 1,024 bytes of the answer.
    pub answer: String,
}

/// What a sender says of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The status, or why there was none.
    pub status: Result<u16, Fault>,
    /// When the receiver asked to be tried again.
    pub retry_after: Option<Duration>,
    /// The first bytes of the answer.
    pub answer: String,
}

impl Answered {
    /// No answer.
    #[must_use]
    pub const fn not(fault: Fault) -> Self {
        Self {
            status: Err(fault),
            retry_after: None,
            answer: String::new(),
        }
    }

    /// What follows from it.
    #[must_use]
    pub const fn ending(&self) -> Ending {
        match self.status {
            Ok(200..=299) => Ending::Delivered,
            Ok(410) => Ending::Gone,
            _ => Ending::Refused(self.retry_after),
        }
    }
}

/// A delivery that waits, in monotonic time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The partner's number of the event.
    pub number: i64,
    pub order_id: OrderId,
    /// Failed attempts so far.
    pub attempts: u32,
    /// How often it had been replayed when it was read.
    pub replays: u32,
    /// Whether it has a row of its own already.
    pub stored: bool,
    pub due: Duration,
    /// Its last attempt is at this moment, or right after it.
    pub ends: Duration,
}

impl Waiting {
    /// The same after one more failed attempt.
    #[must_use]
    pub const fn failed(self) -> Self {
        Self {
            attempts: self.attempts + 1,
            ..self
        }
    }

    /// What is to be written of it.
    #[must_use]
    pub const fn marked(&self, fate: Fate) -> Mark {
        Mark {
            number: self.number,
            order_id: self.order_id,
            attempts: self.attempts,
            replays: self.replays,
            fate,
        }
    }
}

/// What is to be written of one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The partner's number of the event.
    pub number: i64,
    pub order_id: OrderId,
    /// Failed attempts so far.
    pub attempts: u32,
    /// Which replay of it this is about, by how often it had been replayed: of a later one it says nothing.
    pub replays: u32,
    /// What has become of it.
    pub fate: Fate,
}

impl Mark {
    /// Whether this one waits and goes before that one: who has read that one did not know.
    #[must_use]
    pub fn holds_back(&self, waiting: &Waiting) -> bool {
        self.order_id == waiting.order_id
            && self.number < waiting.number
            && matches!(self.fate, Fate::Again(_) | Fate::Behind)
    }
}

/// What has become of a delivery that has, or gets, a row of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Delivered,
    /// It is tried again at this moment, in monotonic time.
    Again(Duration),
    /// It waits for an earlier event of its order.
    Behind,
    /// Its time is over.
    Failed,
}

/// How an endpoint is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Health {
    /// Failed attempts since the last that succeeded.
    pub failures: u32,
    /// How far the gaps between them have grown, as a number of attempts.
    pub step: u32,
    /// While it fails: not before, in monotonic time.
    pub not_before: Duration,
}
