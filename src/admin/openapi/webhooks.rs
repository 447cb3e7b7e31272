//! What is said of `/webhooks` and `/deliveries`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_actors::domain::ids::{DeliveryId, OrderId, PartnerId, WebhookId};

use super::{WEBHOOKS, looks, writes};
use crate::admin::webhooks::{DeliveryBody, WebhookOfPartner};
use crate::errors::Code;
use crate::openapi::{Answer, Operation, word};
use crate::store::{DeliveryState, WebhookStatus};

pub(super) fn operations() -> [Operation; 4] {
    [list(), enable(), deliveries(), replay()]
}

fn list() -> Operation {
    looks("/webhooks", "listWebhooks")
        .says(
            WEBHOOKS,
            "List webhook endpoints",
            "Every partner's endpoints, newest first: how each is doing, and how far it is behind.",
        )
        .query("partner_id", "Only those of this partner.", PartnerId::schema())
        .query(
            "status",
            "Only those in this status.",
            word(WebhookStatus::ALL.map(WebhookStatus::as_str)),
        )
        .paged()
        .answers(Answer::page_of::<WebhookOfPartner>("Endpoints.", webhook()))
}

fn enable() -> Operation {
    writes(HttpMethod::Post, "/webhooks/{webhook_id}/enable", "enableWebhook")
        .says(
            WEBHOOKS,
            "Switch an endpoint on",
            "Whoever switched it off. What waits is tried at once; what is older than 24 hours is in the partner's feed.",
        )
        .path("webhook_id", "Which endpoint.", WebhookId::schema())
        .answers(Answer::of::<WebhookOfPartner>(200, "The endpoint since.", webhook()))
        .refuses(&[Code::WebhookNotFound])
}

fn deliveries() -> Operation {
    looks("/deliveries", "listDeliveries")
        .says(
            WEBHOOKS,
            "List deliveries",
            "Those that failed, wait behind one that did, or are replayed, newest first, each with its attempts. What was \
             taken at once has none.",
        )
        .query("partner_id", "Only those of this partner.", PartnerId::schema())
        .query("webhook_id", "Only those to this endpoint.", WebhookId::schema())
        .query("order_id", "Only those of this order's events.", OrderId::schema())
        .query(
            "status",
            "Only those in this status.",
            word(DeliveryState::ALL.map(DeliveryState::as_str)),
        )
        .paged()
        .answers(Answer::page_of::<DeliveryBody>("Deliveries.", delivery()))
}

fn replay() -> Operation {
    writes(
        HttpMethod::Post,
        "/deliveries/{delivery_id}/replay",
        "replayDelivery",
    )
    .says(
        WEBHOOKS,
        "Send a delivery again",
        "With 24 hours of its own, before what waits of its order.",
    )
    .path("delivery_id", "Which delivery.", DeliveryId::schema())
    .answers(Answer::of::<DeliveryBody>(200, "The delivery since.", delivery()))
    .refuses(&[Code::DeliveryNotFound])
}

fn webhook() -> Value {
    let at = "2026-11-20T12:00:00.123456Z";
    json!({
        "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "webhook_id": "wh_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "url": "https://shop.example/vouchsafe", "events": ["order.delivered"], "description": null,
        "status": "failing", "disabled_reason": null, "disabled_at": null, "failures": 3, "failing_since": at,
        "next_attempt_at": at, "delivered": 97, "refused": 3, "success_rate": 0.97, "behind": 12,
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
