//! JSON representation of a webhook endpoint.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::event_kind::EventKind;
use vouchsafe_domain::ids::WebhookId;
use vouchsafe_domain::schema::HttpUrl;
use vouchsafe_domain::webhook::{DisabledReason, Webhook, WebhookStatus};

/// A webhook endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Webhook)]
pub struct WebhookBody<'a> {
    /// Identifies the endpoint.
    pub webhook_id: WebhookId,
    /// URL of the endpoint.
    #[schema(value_type = HttpUrl)]
    url: &'a str,
    /// Subscribed events.
    events: Vec<EventKind>,
    /// Your description of the endpoint.
    #[schema(required)]
    description: Option<&'a str>,
    /// Whether events are delivered to the endpoint.
    enabled: bool,
    /// Delivery status of the endpoint.
    status: WebhookStatus,
    /// Why the endpoint is disabled. Null while it is enabled.
    #[schema(required)]
    disabled_reason: Option<DisabledReason>,
    /// When the endpoint was disabled. Null while it is enabled.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    disabled_at: Option<OffsetDateTime>,
    /// Start of the current series of failed attempts. Null if the last attempt succeeded.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    failing_since: Option<OffsetDateTime>,
    /// When the next failed delivery is retried, the present if it is due. Null if no delivery is waiting for
    /// a retry.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    next_attempt_at: Option<OffsetDateTime>,
    /// Until when deliveries are also signed with the previous secret. Null without a rotation.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    previous_secret_expires_at: Option<OffsetDateTime>,
    /// When the endpoint was registered.
    #[serde(with = "vouchsafe_domain::timestamp")]
    created_at: OffsetDateTime,
    /// When the endpoint was last changed.
    #[serde(with = "vouchsafe_domain::timestamp")]
    updated_at: OffsetDateTime,
    /// Signing secret. Only in the response that created it: of a registration, a rotation or a move.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'a str>,
}

impl<'a> WebhookBody<'a> {
    /// The wire representation of an endpoint; `secret` only if the request created it.
    #[must_use]
    pub fn of(webhook: &'a Webhook, secret: Option<&'a str>) -> Self {
        Self {
            webhook_id: webhook.webhook_id,
            url: &webhook.url,
            events: webhook.kinds.iter().collect(),
            description: webhook.description.as_deref(),
            enabled: webhook.disabled.is_none(),
            status: webhook.status(),
            disabled_reason: webhook.disabled.map(|(reason, _)| reason),
            disabled_at: webhook.disabled.map(|(_, at)| at),
            failing_since: webhook.failing_since,
            next_attempt_at: webhook.next_attempt_at,
            previous_secret_expires_at: webhook.previous_until,
            created_at: webhook.created_at,
            updated_at: webhook.updated_at,
            secret,
        }
    }
}
