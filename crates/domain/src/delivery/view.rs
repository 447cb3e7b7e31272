//! Deliveries as operators see them: state, attempts, and list filter.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::DeliveryAttempt;
use crate::ids::{DeliveryId, EventId, OrderId, PartnerId, WebhookId};

/// State of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[cfg_attr(
    feature = "utoipa",
    schema(
        description = "State of a delivery: `WAITING` (for its next attempt, or for an earlier event of its order), \
    `DELIVERED`, `FAILED` (not delivered within 24 hours)."
    )
)]
pub enum DeliveryState {
    /// Waits for a retry, or for an earlier event of its order.
    Waiting,
    Delivered,
    /// Not delivered within the retry window.
    Failed,
}

impl DeliveryState {
    pub const ALL: [Self; 3] = [Self::Waiting, Self::Delivered, Self::Failed];

    /// Label in the API and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "WAITING",
            Self::Delivered => "DELIVERED",
            Self::Failed => "FAILED",
        }
    }
}

/// Filter of deliveries; `None` matches any.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeliveryFilter {
    pub partner_id: Option<PartnerId>,
    pub webhook_id: Option<WebhookId>,
    pub order_id: Option<OrderId>,
    pub state: Option<DeliveryState>,
}

/// A delivery with its attempts.
#[derive(Debug, Clone)]
pub struct DeliveryView {
    pub delivery_id: DeliveryId,
    pub partner_id: PartnerId,
    pub webhook_id: WebhookId,
    pub event_id: EventId,
    pub order_id: OrderId,
    pub state: DeliveryState,
    /// Failed attempts since the start or the last replay.
    pub attempts: i32,
    /// Time of the next attempt; `None` if it waits for an earlier event, or has ended.
    pub next_attempt_at: Option<OffsetDateTime>,
    /// Attempts, oldest first.
    pub log: Vec<DeliveryAttempt>,
    /// Commit time of the event.
    pub event_at: OffsetDateTime,
    pub updated_at: OffsetDateTime,
}
