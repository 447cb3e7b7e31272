//! OpenAPI operations of `/webhooks` and `/deliveries`.

use serde_json::{Value, json};
use vouchsafe_domain::event_kind::EventKind;
use vouchsafe_wire::operator::webhooks;

use super::describe;
use crate::openapi::Operation;
use crate::partner::events::sample;
use crate::partner::webhooks::attempt;

pub(super) fn webhooks() -> [Operation; webhooks::OPERATIONS.len()] {
    [
        describe(
            webhooks::LIST_WEBHOOKS,
            "Endpoints of all partners, newest first, with their state and backlog.",
        )
        .list("Page of endpoints.", webhook()),
        describe(webhooks::GET_WEBHOOK, "With its state and backlog.").ok("The endpoint.", webhook()),
        describe(
            webhooks::ENABLE_WEBHOOK,
            "Also after the partner or the service disabled it. Waiting \
            deliveries are retried at once; events older than 24 hours are only in the partner's event \
            feed.",
        )
        .ok("The endpoint after the change.", webhook()),
        describe(
            webhooks::RETRY_WEBHOOK,
            "Attempts every waiting delivery now instead of at its next \
            attempt, also while the endpoint fails.",
        )
        .accepted("The deliveries are attempted from now on.", webhook()),
        describe(
            webhooks::REPLAY_WEBHOOK,
            "Sends one event, or the events of a time range that match the \
            endpoint's filter, again. They are retried for 24 hours from now.",
        )
        .json_body(json!({ "from": "2026-11-20T12:00:00Z", "to": "2026-11-20T13:00:00Z" }))
        .accepted("The events are queued for delivery.", json!({ "replayed": 12 })),
        describe(
            webhooks::LIST_WEBHOOK_DELIVERIES,
            "Every attempt within the retention period, successful \
            ones too, newest first. An attempt appears about a second after its end. Test events are not \
            listed.",
        )
        .list("Page of attempts.", attempt()),
        describe(
            webhooks::GET_WEBHOOK_HEALTH,
            "Attempts by hour of their start, in a range of the last 30 days, by default of the last 7: at most 360 \
            periods, oldest first. Test events are not counted.",
        )
        .query()
        .ok("The health.", json!({ "step_s": 3600, "data": [{
            "at": "2026-11-20T12:00:00.000000Z", "delivered": 95, "failed": 5, "mean_latency_ms": 81.5, "longest_latency_ms": 5000,
        }] })),
        describe(
            webhooks::LIST_DELIVERIES,
            "Deliveries that failed, wait behind a failed one, or are \
            replayed, newest first, with their attempts. A delivery without failures has no entry.",
        )
        .list("Page of deliveries.", delivery()),
        describe(
            webhooks::GET_DELIVERY,
            "With its attempts, and the payload, which has no codes.",
        )
        .ok("The delivery.", delivery_with_payload()),
        describe(
            webhooks::REPLAY_DELIVERY,
            "Sends it again with a new retry window of 24 hours, before \
            waiting deliveries of its order.",
        )
        .ok("The delivery after the change.", delivery()),
    ]
}

fn delivery_with_payload() -> Value {
    let mut with_payload = delivery();
    with_payload["payload"] = sample(EventKind::OrderDelivered);
    with_payload
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
