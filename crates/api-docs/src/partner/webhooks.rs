//! OpenAPI operations of `/webhooks` and `/events`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use vouchsafe_domain::delivery::attempt::{AttemptFilter, LoggedAttempt};
use vouchsafe_domain::envelope::Event;
use vouchsafe_domain::event_kind::EventKind;
use vouchsafe_domain::ids::WebhookId;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::filter::NoFilter;
use vouchsafe_wire::partner::events::EventFilter;
use vouchsafe_wire::partner::webhooks::body::WebhookBody;
use vouchsafe_wire::partner::webhooks::replay::ReplayResultBody;
use vouchsafe_wire::partner::webhooks::request::{
    PutWebhookBody, ReplayEventsBody, RotateSecretBody, TestWebhookBody,
};
use vouchsafe_wire::partner::webhooks::test::TestResultBody;

use super::events::sample;
use super::{EVENTS, signed_operation, unsigned_operation};
use crate::openapi::{Operation, OperationResponse};

const ID: &str = "wh_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";
const EVENT_ID: &str = "evt_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";
const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

pub fn put(operation: Operation) -> Operation {
    let request =
        json!({ "url": "https://shop.example/vouchsafe", "events": ["order.delivered", "order.refunded"] });
    signed_operation(operation, "putWebhook")
        .describe(
            EVENTS,
            "Register or update a webhook endpoint",
            "Updates the endpoint with the given `webhook_id`, or the one with this `url`; otherwise registers a new endpoint. A \
             new endpoint receives events from then on. Its signing secret is returned only once. A `url` with another scheme, host or port \
             replaces the secret: the response has the new one, and no other secret signs what goes there.",
        )
        .json_body::<PutWebhookBody>(request)
        .created::<WebhookBody<'_>>("Registered. Store the secret: it is not returned again.",
            webhook(Some(SECRET)),)
        .ok::<WebhookBody<'_>>("Updated. `secret` is present if `url` has another scheme, host or port than before.", webhook(None))
        .errors(&[
            Code::ValidationFailed,
            Code::WebhookNotFound,
            Code::WebhookLimitReached,
        ])
}

pub fn list(operation: Operation) -> Operation {
    unsigned_operation(operation, "listWebhooks")
        .describe(
            EVENTS,
            "List webhook endpoints",
            "Lists your endpoints, oldest first, with their status and the time of the next delivery attempt.",
        )
        .list::<NoFilter, WebhookBody<'_>>("A page of endpoints.", webhook(None))
}

pub fn remove(operation: Operation) -> Operation {
    webhook_operation(operation, "deleteWebhook")
        .describe(
            EVENTS,
            "Delete a webhook endpoint",
            "Stops all deliveries to the endpoint. Undelivered events remain in the event feed.",
        )
        .response(OperationResponse::empty(204, "Deleted."))
}

pub fn rotate(operation: Operation) -> Operation {
    webhook_operation(operation, "rotateWebhook")
        .describe(
            EVENTS,
            "Rotate a webhook secret",
            "Creates a new signing secret, returned only once. During the overlap every delivery carries two signatures, first \
             that of the new secret.",
        )
        .optional_json_body::<RotateSecretBody>(json!({ "overlap_seconds": 3600 }))
        .ok::<WebhookBody<'_>>("The endpoint with its new secret.",
            webhook(Some(SECRET)),)
        .errors(&[Code::ValidationFailed])
}

pub fn test(operation: Operation) -> Operation {
    let result = json!({
        "event_id": EVENT_ID, "event": "order.delivered", "delivered": true, "status": 204, "fault": null,
        "latency_ms": 12,
        "wrong_signature": { "passed": true, "status": 401, "fault": null, "latency_ms": 11 },
        "duplicate": { "passed": true, "status": 204, "fault": null, "latency_ms": 9 },
    });
    webhook_operation(operation, "testWebhook")
        .describe(
            EVENTS,
            "Send a test event",
            "Sends a sample event with the header `X-Vouchsafe-Test: true` and returns the result. The event is not added to the \
             feed. Production sends it once. The sandbox first sends it with an invalid signature, which your endpoint must \
             reject with a 4xx, and after an accepted delivery sends it again, which your endpoint must accept with a 2xx. Both \
             are certification checks.",
        )
        .optional_json_body::<TestWebhookBody>(json!({ "event": "order.delivered" }))
        .ok::<TestResultBody>("Result of the test.", result)
        .errors(&[Code::ValidationFailed])
}

pub fn retry(operation: Operation) -> Operation {
    webhook_operation(operation, "retryWebhook")
        .describe(
            EVENTS,
            "Retry waiting deliveries",
            "Attempts every delivery that waits for this endpoint now instead of at its next attempt. Use it when your receiver \
             works again. The retry schedule and the 24 hours of each delivery stay as they are. A disabled endpoint receives its \
             deliveries once it is enabled.",
        )
        .accepted::<WebhookBody<'_>>("The deliveries are attempted from now on.", webhook(None))
}

pub fn replay(operation: Operation) -> Operation {
    webhook_operation(operation, "replayWebhook")
        .describe(
            EVENTS,
            "Replay events",
            "Delivers one event, or the events of a time range that match the endpoint's filter, again. The \
             deliveries are retried \
             for 24 hours from now.",
        )
        .json_body::<ReplayEventsBody>(json!({ "event_id": EVENT_ID }))
        .accepted::<ReplayResultBody>("The events are queued for delivery.", json!({ "replayed": 1 }))
        .errors(&[Code::ValidationFailed, Code::EventNotFound])
}

pub fn attempts(operation: Operation) -> Operation {
    unsigned_operation(operation, "listWebhookDeliveries")
        .path_parameter("webhook_id", "Webhook endpoint id.", WebhookId::schema())
        .describe(
            EVENTS,
            "List delivery attempts",
            "Lists every attempt to deliver an event to the endpoint within the last 30 days, successful ones too, newest first. An \
             attempt appears about a second after its end. Test events are not listed.",
        )
        .list::<AttemptFilter, LoggedAttempt>("A page of attempts.", attempt())
        .errors(&[Code::WebhookNotFound])
}

pub fn events(operation: Operation) -> Operation {
    unsigned_operation(operation, "listEvents")
        .describe(
            EVENTS,
            "List events",
            "Lists all your events of the last 30 days, oldest first and without gaps. To catch up after an outage, pass the last \
             event that you processed as `after`.",
        )
        .list::<EventFilter, Event>("A page of events.", sample(EventKind::OrderDelivered))
        .errors(&[Code::EventNotFound])
}

/// An example of a logged attempt.
pub fn attempt() -> Value {
    json!({
        "attempt_id": "att_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "delivery_id": "dlv_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "event_id": EVENT_ID, "event": "order.delivered", "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "attempt": 1,
        "at": "2026-11-20T12:00:00.123456Z", "latency_ms": 31, "outcome": "failed", "status": 500, "fault": null,
        "answer": "database is locked", "next_attempt_at": "2026-11-20T12:00:05.154456Z",
    })
}

fn webhook_operation(operation: Operation, id: &'static str) -> Operation {
    signed_operation(operation, id)
        .path_parameter("webhook_id", "Webhook endpoint id.", WebhookId::schema())
        .errors(&[Code::WebhookNotFound])
}

fn webhook(secret: Option<&str>) -> Value {
    let at = "2026-11-20T12:00:00.123456Z";
    let mut webhook = json!({
        "webhook_id": ID, "url": "https://shop.example/vouchsafe", "events": ["order.delivered", "order.refunded"],
        "description": null, "enabled": true, "status": "active", "disabled_reason": null, "disabled_at": null,
        "failing_since": null, "next_attempt_at": null, "previous_secret_expires_at": null, "created_at": at,
        "updated_at": at,
    });
    if let Some(secret) = secret {
        webhook["secret"] = secret.into();
    }
    webhook
}
