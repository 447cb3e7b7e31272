//! Deliveries as operators see them: state, attempts, and list filter.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::DeliveryAttempt;
use crate::ids::{DeliveryId, EventId, OrderId, PartnerId, WebhookId};
use crate::labels::labels;

labels! {
    /// State of a delivery.
    pub enum DeliveryState: "SCREAMING_SNAKE_CASE",
        "State of a delivery: `WAITING` (for its next attempt, or for an earlier event of its order), \
         `DELIVERED`, `FAILED` (not delivered within 24 hours)." {
        /// Waits for a retry, or for an earlier event of its order.
        Waiting,
        Delivered,
        /// Not delivered within the retry window.
        Failed,
    }
}

/// Filter of deliveries; `None` matches any.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, utoipa::IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct DeliveryFilter {
    /// Filter by partner.
    #[param(inline)]
    #[arg(long = "partner", value_name = "PARTNER_ID")]
    pub partner_id: Option<PartnerId>,
    /// Filter by endpoint.
    #[param(inline)]
    #[arg(long = "webhook", value_name = "WEBHOOK_ID")]
    pub webhook_id: Option<WebhookId>,
    /// Filter by order.
    #[param(inline)]
    #[arg(long = "order", value_name = "ORDER_ID")]
    pub order_id: Option<OrderId>,
    /// Filter by status.
    #[serde(rename = "status")]
    #[param(inline)]
    #[arg(long = "status", value_name = "STATUS", value_parser = crate::arguments::enum_parser::<DeliveryState>())]
    pub state: Option<DeliveryState>,
}

/// A delivery that failed, waits behind a failed one, or is replayed. A delivery without failures has no
/// entry.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = Delivery)]
pub struct DeliveryView {
    /// Delivery ID.
    pub delivery_id: DeliveryId,
    /// Partner ID.
    pub partner_id: PartnerId,
    /// Endpoint ID.
    pub webhook_id: WebhookId,
    /// Event ID.
    pub event_id: EventId,
    /// Order ID.
    pub order_id: OrderId,
    /// Status.
    #[serde(rename = "status")]
    pub state: DeliveryState,
    /// Failed attempts since the first attempt or the replay.
    #[serde(rename = "failed_attempts")]
    pub attempts: i32,
    /// Time of the next attempt, the present if it is due; null if it waits for an earlier delivery of its
    /// order, its endpoint is disabled, or it has ended.
    #[serde(with = "crate::timestamp::option")]
    #[schema(required)]
    pub next_attempt_at: Option<OffsetDateTime>,
    /// Attempts, oldest first.
    #[serde(rename = "attempts")]
    pub log: Vec<DeliveryAttempt>,
    /// Commit time of the event.
    #[serde(with = "crate::timestamp")]
    pub event_at: OffsetDateTime,
    /// Time of the last change.
    #[serde(with = "crate::timestamp")]
    pub updated_at: OffsetDateTime,
}
