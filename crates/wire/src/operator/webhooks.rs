//! Operations and bodies of `/webhooks` and `/deliveries`.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::delivery::attempt::{AttemptFilter, LoggedAttempt};
use vouchsafe_domain::delivery::view::{DeliveryFilter, DeliveryView};
use vouchsafe_domain::envelope::{Envelope, Event};
use vouchsafe_domain::event_kind::EventKind;
use vouchsafe_domain::ids::{PartnerId, WebhookId};
use vouchsafe_domain::operator::Role;
use vouchsafe_domain::period::Period;
use vouchsafe_domain::schema::HttpUrl;
use vouchsafe_domain::webhook::{DisabledReason, Webhook, WebhookFilter, WebhookStatus};

use crate::column::col;
use crate::error_code::Code;
use crate::operation::{Page, operations};
use crate::operator::operation::SecondOperator::Never;
use crate::operator::operation::{Operation, OperatorAccess, get, post};
use crate::partner::webhooks::replay::WebhookReplay;
use crate::partner::webhooks::request::ReplayEventsBody;

operations! {
    OperatorAccess;
    LIST_WEBHOOKS: Operation<WebhookFilter, Page<WebhookOfPartner>> =
        get("/webhooks", Role::Viewer, "listWebhooks", "List webhook endpoints")
            .columns(&[
                col("Webhook", "webhook_id"),
                col("Partner", "partner_id"),
                col("Status", "status"),
                col("Backlog", "backlog"),
                col("Failures", "consecutive_failures"),
                col("Failing since", "failing_since").at(7),
                col("URL", "url").text(20),
                col("Next attempt", "next_attempt_at").at(4).terminal_only(),
            ]);
    GET_WEBHOOK: Operation<(), WebhookOfPartner> =
        get("/webhooks/{webhook_id}", Role::Viewer, "getWebhook", "Get a webhook endpoint");
    ENABLE_WEBHOOK: Operation<(), WebhookOfPartner> =
        post("/webhooks/{webhook_id}/enable", Role::Operator, Never, "enableWebhook", "Enable a webhook endpoint");
    RETRY_WEBHOOK: Operation<(), WebhookOfPartner> = post(
        "/webhooks/{webhook_id}/retry",
        Role::Operator,
        Never,
        "retryWebhook",
        "Retry the waiting deliveries of a webhook endpoint",
    );
    REPLAY_WEBHOOK: Operation<ReplayEventsBody, WebhookReplay> =
        post("/webhooks/{webhook_id}/replay", Role::Operator, Never, "replayWebhook", "Replay events")
            .errors(&[Code::EventNotFound]);
    LIST_WEBHOOK_DELIVERIES: Operation<AttemptFilter, Page<LoggedAttempt>> = get(
        "/webhooks/{webhook_id}/deliveries",
        Role::Viewer,
        "listWebhookDeliveries",
        "List the delivery attempts of a webhook endpoint",
    )
            .columns(&[
                col("Time", "at"),
                col("Event", "event").at(4),
                col("Outcome", "outcome"),
                col("Response", "status fault"),
                col("ms", "latency_ms"),
                col("Attempt", "attempt"),
                col("Order", "order_id").at(0),
                col("Delivery", "delivery_id").at(8),
                col("Retry due", "next_attempt_at"),
                col("First bytes of the response", "response_body").console_only(),
            ]);
    GET_WEBHOOK_HEALTH: Operation<Period, WebhookHealth> = get(
        "/webhooks/{webhook_id}/health",
        Role::Viewer,
        "getWebhookHealth",
        "Get the health of a webhook endpoint over time",
    )
            .table_columns(&[
                col("Time", "at"),
                col("Delivered", "delivered"),
                col("Failed", "failed"),
                col("Mean (ms)", "mean_latency_ms"),
                col("Longest (ms)", "longest_latency_ms"),
            ]);
    LIST_DELIVERIES: Operation<DeliveryFilter, Page<DeliveryView>> =
        get("/deliveries", Role::Viewer, "listDeliveries", "List deliveries")
            .columns(&[
                col("Delivery", "delivery_id"),
                col("Webhook", "webhook_id"),
                col("Order", "order_id").at(7),
                col("Status", "status"),
                col("Last response", "attempts.last.status attempts.last.fault"),
                col("Failed attempts", "failed_attempts"),
                col("Next attempt", "next_attempt_at"),
                col("Event", "event_id").terminal_only(),
            ]);
    GET_DELIVERY: Operation<(), DeliveryWithPayload> =
        get("/deliveries/{delivery_id}", Role::Viewer, "getDelivery", "Get a delivery");
    REPLAY_DELIVERY: Operation<(), DeliveryView> =
        post("/deliveries/{delivery_id}/replay", Role::Operator, Never, "replayDelivery", "Replay a delivery");
}

/// A webhook endpoint, its partner and state.
#[derive(Serialize, ToSchema)]
pub struct WebhookOfPartner {
    /// Partner ID.
    partner_id: PartnerId,
    /// Endpoint ID.
    pub webhook_id: WebhookId,
    /// URL.
    #[schema(value_type = HttpUrl)]
    url: String,
    /// Subscribed events.
    events: Vec<EventKind>,
    /// The partner's description.
    #[schema(required)]
    description: Option<String>,
    /// Status.
    status: WebhookStatus,
    /// Reason why deliveries are disabled; null if they are not.
    #[schema(required)]
    disabled_reason: Option<DisabledReason>,
    /// Time at which deliveries were disabled.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    disabled_at: Option<OffsetDateTime>,
    /// Failed attempts since the last success.
    consecutive_failures: i64,
    /// Time since which every attempt has failed.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    failing_since: Option<OffsetDateTime>,
    /// Time of the next retry; the present if it is due.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    next_attempt_at: Option<OffsetDateTime>,
    /// Successful attempts, ever.
    successful_attempts: i64,
    /// Failed attempts, ever.
    failed_attempts: i64,
    /// Share of successful attempts, from 0 to 1; null before the first.
    #[schema(required)]
    success_rate: Option<f64>,
    /// Number of events that were not attempted yet, of all kinds. A failed delivery, and those behind it,
    /// are not counted: they have entries among the deliveries.
    backlog: i64,
    /// Commit time of the oldest event that was not attempted yet.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    oldest_event_at: Option<OffsetDateTime>,
    /// Node that delivered last.
    #[schema(required)]
    node: Option<String>,
    /// Time of registration.
    #[serde(with = "vouchsafe_domain::timestamp")]
    created_at: OffsetDateTime,
    /// Time of the last change.
    #[serde(with = "vouchsafe_domain::timestamp")]
    updated_at: OffsetDateTime,
}

/// Attempts to deliver to an endpoint in a period.
#[derive(Serialize, ToSchema)]
pub struct WebhookHealthSample {
    /// Start of the period.
    #[serde(with = "vouchsafe_domain::timestamp")]
    pub at: OffsetDateTime,
    /// Number of attempts that succeeded.
    pub delivered: i64,
    /// Number of attempts that failed.
    pub failed: i64,
    /// Mean duration of an attempt in milliseconds.
    pub mean_latency_ms: f64,
    /// Duration of the longest attempt in milliseconds.
    pub longest_latency_ms: i32,
}

/// Attempts to deliver to an endpoint over time, oldest first.
#[derive(Serialize, ToSchema)]
pub struct WebhookHealth {
    /// Seconds of a period: an hour, or more hours so that a range has at most 360 periods.
    pub step_s: i32,
    /// A period without attempts has no entry.
    pub data: Vec<WebhookHealthSample>,
}

/// A delivery and what it sends.
#[derive(Serialize, ToSchema)]
pub struct DeliveryWithPayload {
    #[serde(flatten)]
    pub delivery: DeliveryView,
    /// Body of the request to the endpoint; null when the event has left the feed of 30 days.
    #[schema(required, value_type = Option<Event>)]
    pub payload: Option<Envelope>,
}

impl From<Webhook> for WebhookOfPartner {
    fn from(webhook: Webhook) -> Self {
        Self {
            status: webhook.status(),
            events: webhook.kinds.iter().collect(),
            success_rate: success_ratio(webhook.delivered, webhook.refused),
            partner_id: webhook.partner_id,
            webhook_id: webhook.webhook_id,
            url: webhook.url,
            description: webhook.description,
            disabled_reason: webhook.disabled.map(|(reason, _)| reason),
            disabled_at: webhook.disabled.map(|(_, at)| at),
            consecutive_failures: webhook.failures,
            failing_since: webhook.failing_since,
            next_attempt_at: webhook.next_attempt_at,
            successful_attempts: webhook.delivered,
            failed_attempts: webhook.refused,
            backlog: webhook.behind,
            oldest_event_at: webhook.oldest_event_at,
            node: webhook.leased_by,
            created_at: webhook.created_at,
            updated_at: webhook.updated_at,
        }
    }
}

#[allow(clippy::cast_precision_loss)] // for display only
fn success_ratio(delivered: i64, refused: i64) -> Option<f64> {
    let all = delivered.checked_add(refused).filter(|all| *all > 0)?;
    Some(delivered as f64 / all as f64)
}
