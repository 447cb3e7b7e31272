//! OpenAPI operations of `/webhooks` and `/deliveries`.

use serde_json::{Value, json};
use vouchsafe_domain::delivery::attempt::{AttemptFilter, LoggedAttempt};
use vouchsafe_domain::delivery::view::{DeliveryFilter, DeliveryView};
use vouchsafe_domain::event_kind::EventKind;
use vouchsafe_domain::webhook::WebhookFilter;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::webhooks::{DeliveryWithPayload, WebhookOfPartner};
use vouchsafe_wire::partner::webhooks::replay::ReplayResultBody;
use vouchsafe_wire::partner::webhooks::request::ReplayEventsBody;

use super::{WEBHOOKS, json_write_operation, read_operation};
use crate::openapi::Operation;
use crate::partner::events::sample;
use crate::partner::webhooks::attempt;

pub fn list(operation: Operation) -> Operation {
    read_operation(operation, "listWebhooks")
        .describe(
            WEBHOOKS,
            "List webhook endpoints",
            "Endpoints of all partners, newest first, with their state and backlog.",
        )
        .list::<WebhookFilter, WebhookOfPartner>("Page of endpoints.", webhook())
}

pub fn get(operation: Operation) -> Operation {
    read_operation(operation, "getWebhook")
        .describe(WEBHOOKS, "Get a webhook endpoint", "With its state and backlog.")
        .ok::<WebhookOfPartner>("The endpoint.", webhook())
}

pub fn enable(operation: Operation) -> Operation {
    read_operation(operation, "enableWebhook")
        .describe(
            WEBHOOKS,
            "Enable a webhook endpoint",
            "Also after the partner or the service disabled it. Waiting deliveries are retried at once; events older than 24 hours \
             are only in the partner's event feed.",
        )
        .ok::<WebhookOfPartner>("The endpoint after the change.", webhook())
}

pub fn retry(operation: Operation) -> Operation {
    read_operation(operation, "retryWebhook")
        .describe(
            WEBHOOKS,
            "Retry the waiting deliveries of a webhook endpoint",
            "Attempts every waiting delivery now instead of at its next attempt, also while the endpoint fails.",
        )
        .accepted::<WebhookOfPartner>("The deliveries are attempted from now on.", webhook())
}

pub fn attempts(operation: Operation) -> Operation {
    read_operation(operation, "listWebhookDeliveries")
        .describe(
            WEBHOOKS,
            "List the delivery attempts of a webhook endpoint",
            "Every attempt within the retention period, successful ones too, newest first. An attempt appears about a second after \
             its end. Test events are not listed.",
        )
        .list::<AttemptFilter, LoggedAttempt>("Page of attempts.", attempt())
}

pub fn deliveries(operation: Operation) -> Operation {
    read_operation(operation, "listDeliveries")
        .describe(
            WEBHOOKS,
            "List deliveries",
            "Deliveries that failed, wait behind a failed one, or are replayed, newest first, with their attempts. A delivery \
             without failures has no entry.",
        )
        .list::<DeliveryFilter, DeliveryView>("Page of deliveries.", delivery())
}

pub fn get_delivery(operation: Operation) -> Operation {
    let mut with_payload = delivery();
    with_payload["payload"] = sample(EventKind::OrderDelivered);
    read_operation(operation, "getDelivery")
        .describe(
            WEBHOOKS,
            "Get a delivery",
            "With its attempts, and the payload, which has no codes.",
        )
        .ok::<DeliveryWithPayload>("The delivery.", with_payload)
}

pub fn replay(operation: Operation) -> Operation {
    read_operation(operation, "replayDelivery")
        .describe(
            WEBHOOKS,
            "Replay a delivery",
            "Sends it again with a new retry window of 24 hours, before waiting deliveries of its order.",
        )
        .ok::<DeliveryView>("The delivery after the change.", delivery())
}

pub fn replay_events(operation: Operation) -> Operation {
    json_write_operation(operation, "replayWebhook")
        .describe(
            WEBHOOKS,
            "Replay events",
            "Sends one event, or the events of a time range that match the endpoint's filter, again. They are retried for 24 hours from now.",
        )
        .json_body::<ReplayEventsBody>(json!({ "from": "2026-11-20T12:00:00Z", "to": "2026-11-20T13:00:00Z" }))
        .accepted::<ReplayResultBody>("The events are queued for delivery.", json!({ "replayed": 12 }))
        .errors(&[Code::EventNotFound])
}

fn webhook() -> Value {
    let at = "2026-11-20T12:00:00.123456Z";
    json!({
        "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "webhook_id": "wh_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "url": "https://shop.example/vouchsafe", "events": ["order.delivered"], "description": null,
        "status": "failing", "disabled_reason": null, "disabled_at": null, "consecutive_failures": 5, "failing_since": at,
        "next_attempt_at": at, "successful_attempts": 95, "failed_attempts": 5, "success_rate": 0.95, "backlog": 12,
        "oldest_event_at": at, "node": "node-1", "created_at": at, "updated_at": at,
    })
}

fn delivery() -> Value {
    let at = "2026-11-20T12:00:00.123456Z";
    json!({
        "delivery_id": "dlv_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "webhook_id": "wh_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "event_id": "evt_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "status": "WAITING", "failed_attempts": 1,
        "next_attempt_at": at, "event_at": at, "updated_at": at,
        "attempts": [{ "at": at, "latency_ms": 5000, "status": null, "fault": "timeout", "answer": "" }],
    })
}
