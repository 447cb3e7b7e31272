//! What is said of `/webhooks` and `/events`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_actors::domain::envelope::Envelope;
use vouchsafe_actors::domain::ids::{EventId, WebhookId};

use super::{EVENTS, identified, signed};
use crate::errors::Code;
use crate::http::webhooks::{
    ReplayRequest, ReplayedBody, RotateRequest, TestBody, TestRequest, WebhookBody, WebhookRequest,
};
use crate::openapi::{Answer, Operation};

const ID: &str = "wh_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";
const EVENT_ID: &str = "evt_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";
const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

pub(super) fn operations() -> [Operation; 7] {
    [put(), list(), remove(), rotate(), test(), replay(), events()]
}

fn put() -> Operation {
    let request =
        json!({ "url": "https://shop.example/vouchsafe", "events": ["order.delivered", "order.refunded"] });
    signed(HttpMethod::Post, "/webhooks", "putWebhook")
        .says(
            EVENTS,
            "Register or change a webhook endpoint",
            "With `webhook_id` that endpoint is changed; without, the one with this `url`, or a new one is made. A new one \
             is told of what happens from then on, and its secret is shown once.",
        )
        .takes::<WebhookRequest>(request)
        .answers(Answer::of::<WebhookBody<'_>>(
            201,
            "Registered. The secret is shown here alone.",
            webhook(Some(SECRET)),
        ))
        .answers(Answer::of::<WebhookBody<'_>>(200, "Changed.", webhook(None)))
        .refuses(&[
            Code::ValidationFailed,
            Code::WebhookNotFound,
            Code::WebhookLimitReached,
        ])
}

fn list() -> Operation {
    identified(HttpMethod::Get, "/webhooks", "listWebhooks")
        .says(
            EVENTS,
            "List webhook endpoints",
            "Your endpoints, oldest first: how each is, and when what failed is tried next.",
        )
        .paged()
        .answers(Answer::page_of::<WebhookBody<'_>>("Endpoints.", webhook(None)))
}

fn remove() -> Operation {
    about_one(HttpMethod::Delete, "/webhooks/{webhook_id}", "deleteWebhook")
        .says(
            EVENTS,
            "Delete a webhook endpoint",
            "It is told nothing more, and what it was not told yet is only in the feed.",
        )
        .answers(Answer::empty(204, "Deleted."))
}

fn rotate() -> Operation {
    about_one(HttpMethod::Post, "/webhooks/{webhook_id}/rotate", "rotateWebhook")
        .says(
            EVENTS,
            "Rotate the secret of an endpoint",
            "Makes a new secret, shown once. Until the overlap ends both sign every delivery, the new one first.",
        )
        .may_take::<RotateRequest>(json!({ "overlap_seconds": 3600 }))
        .answers(Answer::of::<WebhookBody<'_>>(
            200,
            "The endpoint with its new secret.",
            webhook(Some(SECRET)),
        ))
        .refuses(&[Code::ValidationFailed])
}

fn test() -> Operation {
    let came = json!({
        "event_id": EVENT_ID, "event": "order.delivered", "delivered": true, "status": 204, "fault": null,
        "latency_ms": 12,
        "wrong_signature": { "passed": true, "status": 401, "fault": null, "latency_ms": 11 },
        "duplicate": { "passed": true, "status": 204, "fault": null, "latency_ms": 9 },
    });
    about_one(HttpMethod::Post, "/webhooks/{webhook_id}/test", "testWebhook")
        .says(
            EVENTS,
            "Test an endpoint",
            "Sends a sample now, with the header `X-Vouchsafe-Test: true`, and says what came of it. It is in no feed. In \
             production it is sent once. The sandbox sends it with a wrong signature first, which must be answered 4xx; and \
             after it was taken once more, which must be answered 2xx: both are points of the certification.",
        )
        .may_take::<TestRequest>(json!({ "event": "order.delivered" }))
        .answers(Answer::of::<TestBody>(200, "What came of it.", came))
        .refuses(&[Code::ValidationFailed])
}

fn replay() -> Operation {
    about_one(HttpMethod::Post, "/webhooks/{webhook_id}/replay", "replayWebhook")
        .says(
            EVENTS,
            "Send events again",
            "One event, or those of a span of time that the endpoint asks for; with 24 hours of their own.",
        )
        .takes::<ReplayRequest>(json!({ "event_id": EVENT_ID }))
        .answers(Answer::of::<ReplayedBody>(
            202,
            "They are sent again.",
            json!({ "replayed": 1 }),
        ))
        .refuses(&[Code::ValidationFailed, Code::EventNotFound])
}

fn events() -> Operation {
    identified(HttpMethod::Get, "/events", "listEvents")
        .says(
            EVENTS,
            "Read the events",
            "What you were told of in the last 30 days, oldest first, without a gap: to catch up after an outage, read on \
             behind the last event that you know.",
        )
        .query("after", "Only those behind this event.", EventId::schema())
        .paged()
        .answers(Answer::page_of::<Envelope>("Events.", event()))
        .refuses(&[Code::EventNotFound])
}

fn about_one(method: HttpMethod, path: &str, id: &'static str) -> Operation {
    signed(method, path, id)
        .path("webhook_id", "Which endpoint.", WebhookId::schema())
        .refuses(&[Code::WebhookNotFound])
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

fn event() -> Value {
    json!({
        "event": "order.delivered", "event_id": EVENT_ID, "created_at": "2026-11-20T12:00:00.123456Z",
        "data": {
            "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "status": "DELIVERED", "total_amount": 25.5,
            "currency": "USD", "fulfilled_from": "cache",
            "vouchers": [{ "product_id": "amzn-us", "expiry": "2027-12-31" }], "sequence": 3,
        },
    })
}
