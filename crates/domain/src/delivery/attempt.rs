//! Log of delivery attempts: an entry per attempt, and its list filter.

use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};

use super::{AttemptOutcome, DeliveryAttempt, DeliveryFault, WebhookEvent};
use crate::event_kind::EventKind;
use crate::ids::{AttemptId, DeliveryId, EventId, OrderId, WebhookId};
use crate::labels::labels;
use crate::period::Period;

/// How many bytes of a response the log keeps of a failed attempt. Of a successful one it keeps none.
pub const MAX_LOGGED_RESPONSE_BYTES: usize = 256;

labels! {
    /// Result of an attempt.
    pub enum AttemptResult: "snake_case",
        "Result of an attempt: `delivered` (a 2xx within five seconds) or `failed`." {
        /// The receiver responded with 2xx.
        Delivered,
        Failed,
    }
}

/// An attempt that has ended, to be logged.
#[derive(Debug, Clone)]
pub struct EndedAttempt {
    pub webhook_id: WebhookId,
    pub event: WebhookEvent,
    pub order_id: OrderId,
    /// Number of the attempt since the first one or the last replay, from 1.
    pub number: u32,
    pub outcome: AttemptOutcome,
    pub attempt: DeliveryAttempt,
    /// When the delivery is due for its next attempt.
    pub retry_at: Option<OffsetDateTime>,
}

/// An attempt to deliver an event to a webhook endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct LoggedAttempt {
    /// Attempt ID.
    pub attempt_id: AttemptId,
    /// Delivery ID; null if the first attempt succeeded and the event was not replayed.
    #[schema(required)]
    pub delivery_id: Option<DeliveryId>,
    /// Event ID.
    pub event_id: EventId,
    /// Type of the event.
    pub event: EventKind,
    /// Order ID.
    pub order_id: OrderId,
    /// Number of the attempt since the first one or the last replay, from 1.
    pub attempt: i32,
    /// Start of the attempt.
    #[serde(with = "crate::timestamp")]
    pub at: OffsetDateTime,
    /// Duration of the attempt in milliseconds.
    pub latency_ms: i32,
    /// Result.
    pub outcome: AttemptResult,
    /// Status code of the response; null if there was none.
    #[schema(required)]
    pub status: Option<i16>,
    /// Why there was no response; null if there was one.
    #[schema(required)]
    pub fault: Option<DeliveryFault>,
    /// The first 256 bytes of the response body of a failed attempt; otherwise empty. Control characters are
    /// replaced by spaces.
    pub response_body: String,
    /// Earlier name of `response_body`.
    #[schema(deprecated)]
    pub answer: String,
    /// Time at which the delivery was due for its next attempt; null if this was the last.
    #[serde(with = "crate::timestamp::option")]
    #[schema(required)]
    pub next_attempt_at: Option<OffsetDateTime>,
}

/// Longest period of a list by event or of successes alone.
const MAX_UNINDEXED_PERIOD: Duration = Duration::days(2);

/// Filter of the attempts of an endpoint; `None` matches any.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, utoipa::IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct AttemptFilter {
    /// Filter by result.
    #[param(inline)]
    #[arg(long, value_parser = crate::arguments::enum_parser::<AttemptResult>())]
    pub outcome: Option<AttemptResult>,
    /// Filter by type of event.
    #[param(inline)]
    #[arg(long, value_parser = crate::arguments::enum_parser::<EventKind>())]
    pub event: Option<EventKind>,
    /// Filter by order.
    #[param(inline)]
    #[arg(long = "order", value_name = "ORDER_ID")]
    pub order_id: Option<OrderId>,
    /// Filter by delivery.
    #[param(inline)]
    #[arg(long = "delivery", value_name = "DELIVERY_ID")]
    pub delivery_id: Option<DeliveryId>,
    /// Start of the attempt.
    #[serde(flatten)]
    #[param(ignore)]
    #[command(flatten)]
    pub period: Period,
}

impl AttemptFilter {
    /// Whether a list reads a bounded part of the log: events and successes have no index of their own.
    #[must_use]
    pub fn is_bounded(&self, now: OffsetDateTime) -> bool {
        let has_index = self.order_id.is_some() || self.delivery_id.is_some();
        let reads_all = self.event.is_some() || self.outcome == Some(AttemptResult::Delivered);
        let end = self.period.to.unwrap_or(now);
        has_index
            || !reads_all
            || self
                .period
                .from
                .is_some_and(|from| end - from <= MAX_UNINDEXED_PERIOD)
    }
}
