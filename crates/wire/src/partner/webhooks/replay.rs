//! Response body of `POST /webhooks/{webhook_id}/replay`.

use serde::Serialize;
use utoipa::ToSchema;

/// Result of a replay.
#[derive(Debug, Serialize, ToSchema)]
pub struct WebhookReplay {
    /// Number of events queued for delivery.
    pub replayed: usize,
}
