//! OpenAPI operations of `/webhooks` and `/events`.

use serde_json::{Value, json};
use vouchsafe_domain::event_kind::EventKind;
use vouchsafe_wire::partner::operations;

use super::describe;
use super::events::sample;
use crate::openapi::{Operation, ResponseHeader, text};

const ID: &str = "wh_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";
const EVENT_ID: &str = "evt_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";
const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

pub(super) fn webhooks() -> Vec<Operation> {
    vec![
        describe(operations::LIST_EVENTS, "Lists all your events of the last 30 days, oldest first and \
            without gaps. To catch up after an outage, pass the last event that you processed as `after`. \
            A page by `event` reads up to 1,000 events, and may be empty although `has_more` is true.")
            .header_parameter("Prefer", "`wait=N`, up to 30 seconds: if the page is empty, the server \
                responds as soon as an event follows, or after N seconds.",
            text("wait=20"))
            .list("A page of events.", sample(EventKind::OrderDelivered))
            .with_header(ResponseHeader::PreferenceApplied),
        describe(operations::GET_EVENT, "Returns an event of the last 30 days, as it was delivered.")
            .ok("The event.", sample(EventKind::OrderDelivered)),
        describe(operations::LIST_WEBHOOKS, "Lists your endpoints, oldest first, with their status and the \
            time of the next delivery attempt.")
            .list("A page of endpoints.", webhook(None)),
        describe(operations::PUT_WEBHOOK, "Updates the endpoint with the given `webhook_id`, or the one \
            with this `url`; otherwise registers a new endpoint. A new endpoint receives events from then \
            on. Its signing secret is returned only once. A `url` with another scheme, host or port \
            replaces the secret: the response has the new one, and no other secret signs what goes there.")
            .json_body(json!({ "url": "https://shop.example/vouchsafe", "events": ["order.delivered", "order.refunded"] }))
            .responses([(201, "Registered. Store the secret: it is not returned again.",
            webhook(Some(SECRET))), (200, "Updated. `secret` is present if `url` has another scheme, host \
                or port than before.", webhook(None))]),
        describe(operations::GET_WEBHOOK, "Returns an endpoint with its status and the time of the next delivery attempt.")
            .ok("The endpoint.", webhook(None)),
        describe(operations::LIST_WEBHOOK_DELIVERIES, "Lists every attempt to deliver an event to the \
            endpoint within the last 30 days, successful ones too, newest first. An attempt appears about \
            a second after its end. Test events are not listed.")
            .list("A page of attempts.", attempt()),
        describe(operations::DELETE_WEBHOOK, "Stops all deliveries to the endpoint. Undelivered events remain in the event feed.")
            .no_content("Deleted."),
        describe(operations::ROTATE_WEBHOOK, "Creates a new signing secret, returned only once. During the \
            overlap every delivery carries two signatures, first that of the new secret.")
            .optional_json_body(json!({ "overlap_seconds": 3600 }))
            .ok("The endpoint with its new secret.",
            webhook(Some(SECRET))),
        describe(operations::TEST_WEBHOOK, "Sends a sample event with the header `X-Vouchsafe-Test: true` \
            and returns the result. The event is not added to the feed. Production sends it once. The \
            sandbox first sends it with an invalid signature, which your endpoint must reject with a 4xx, \
            and after an accepted delivery sends it again, which your endpoint must accept with a 2xx. \
            Both are certification checks.")
            .optional_json_body(json!({ "event": "order.delivered" }))
            .ok("Result of the test.", json!({
                "event_id": EVENT_ID, "event": "order.delivered", "delivered": true, "status": 204, "fault": null,
                "latency_ms": 12,
                "wrong_signature": { "passed": true, "status": 401, "fault": null, "latency_ms": 11 },
                "duplicate": { "passed": true, "status": 204, "fault": null, "latency_ms": 9 },
            })),
        describe(operations::RETRY_WEBHOOK, "Attempts every delivery that waits for this endpoint now \
            instead of at its next attempt. Use it when your receiver works again. The retry schedule and \
            the 24 hours of each delivery stay as they are. A disabled endpoint receives its deliveries \
            once it is enabled.")
            .accepted("The deliveries are attempted from now on.", webhook(None)),
        describe(operations::REPLAY_WEBHOOK, "Delivers one event, or the events of a time range that match \
            the endpoint's filter, again. The deliveries are retried for 24 hours from now.")
            .json_body(json!({ "event_id": EVENT_ID }))
            .accepted("The events are queued for delivery.", json!({ "replayed": 1 })),
    ]
}

/// An example of a logged attempt.
pub(crate) fn attempt() -> Value {
    json!({
        "attempt_id": "att_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "delivery_id": "dlv_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "event_id": EVENT_ID, "event": "order.delivered", "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "attempt": 1,
        "at": "2026-11-20T12:00:00.123456Z", "latency_ms": 31, "outcome": "failed", "status": 500, "fault": null,
        "response_body": "database is locked", "answer": "database is locked", "next_attempt_at": "2026-11-20T12:00:05.154456Z",
    })
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
