//! Response body of `POST /webhooks/{webhook_id}/test`.

use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_domain::delivery::{AttemptOutcome, DeliveryFault, SendResult};
use vouchsafe_domain::event_kind::EventKind;
use vouchsafe_domain::ids::EventId;

/// Result of a test delivery.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookTest)]
pub struct WebhookTestBody {
    /// Id of the sample event. It is not in the event feed.
    event_id: EventId,
    /// Type of the sample event.
    event: EventKind,
    /// Whether the endpoint accepted it with a 2xx within five seconds.
    delivered: bool,
    /// HTTP status of the response. Null without a response.
    #[schema(required)]
    status: Option<u16>,
    /// Why there was no response. Null if there was one.
    #[schema(required)]
    fault: Option<DeliveryFault>,
    /// Duration of the attempt in milliseconds.
    latency_ms: u32,
    /// Result of the delivery with an invalid signature, sent first; a 4xx passes. Null in production.
    #[schema(required)]
    wrong_signature: Option<WebhookTestAttempt>,
    /// Result of the repeated delivery; a 2xx passes. Null in production, and if the first delivery was not
    /// accepted.
    #[schema(required)]
    duplicate: Option<WebhookTestAttempt>,
}

/// Result of a delivery that checks signature verification or deduplication.
#[derive(Debug, Serialize, ToSchema)]
pub struct WebhookTestAttempt {
    /// Whether the endpoint responded as required.
    passed: bool,
    /// HTTP status of the response. Null without a response.
    #[schema(required)]
    status: Option<u16>,
    /// Why there was no response. Null if there was one.
    #[schema(required)]
    fault: Option<DeliveryFault>,
    /// Duration of the attempt in milliseconds.
    latency_ms: u32,
}

/// The deliveries of a test: result and duration of each.
pub struct TestAttempts {
    /// Result of an event with an invalid signature. Sandbox only.
    pub wrong_signature: Option<(SendResult, Duration)>,
    pub valid: (SendResult, Duration),
    /// The repeated delivery. Sandbox only, if the first was accepted.
    pub duplicate: Option<(SendResult, Duration)>,
}

impl WebhookTestBody {
    /// The result of a test with this sample event.
    #[must_use]
    pub fn of(event_id: EventId, event: EventKind, attempts: TestAttempts) -> Self {
        let TestAttempts {
            wrong_signature,
            valid: (result, elapsed),
            duplicate,
        } = attempts;
        Self {
            event_id,
            event,
            delivered: is_accepted(&result),
            status: result.status.ok(),
            fault: result.status.err(),
            latency_ms: milliseconds(elapsed),
            wrong_signature: wrong_signature.map(|attempt| WebhookTestAttempt::of(attempt, is_rejected)),
            duplicate: duplicate.map(|attempt| WebhookTestAttempt::of(attempt, is_accepted)),
        }
    }
}

/// Whether the endpoint accepted the delivery.
#[must_use]
pub fn is_accepted(result: &SendResult) -> bool {
    result.outcome() == AttemptOutcome::Delivered
}

const fn is_rejected(result: &SendResult) -> bool {
    matches!(result.status, Ok(400..=499))
}

fn milliseconds(elapsed: Duration) -> u32 {
    u32::try_from(elapsed.as_millis()).unwrap_or(u32::MAX)
}

impl WebhookTestAttempt {
    fn of((result, elapsed): (SendResult, Duration), is_expected: impl FnOnce(&SendResult) -> bool) -> Self {
        Self {
            passed: is_expected(&result),
            status: result.status.ok(),
            fault: result.status.err(),
            latency_ms: milliseconds(elapsed),
        }
    }
}
