//! OpenAPI operations of `/webhooks` and `/deliveries`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_domain::delivery::view::DeliveryState;
use vouchsafe_domain::ids::{DeliveryId, OrderId, PartnerId, WebhookId};
use vouchsafe_domain::webhook::WebhookStatus;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::webhooks::{DeliveryBody, WebhookOfPartner};

use super::{WEBHOOKS, read_operation, write_operation};
use crate::api::docs::openapi::{Operation, OperationResponse, enum_text};

pub(super) fn operations() -> [Operation; 4] {
    [list(), enable(), deliveries(), replay()]
}

fn list() -> Operation {
    read_operation("/webhooks", "listWebhooks")
        .describe(
            WEBHOOKS,
            "List webhook endpoints",
            "Endpoints of all partners, newest first, with their state and backlog.",
        )
        .query_parameter("partner_id", "Filter by partner.", PartnerId::schema())
        .query_parameter(
            "status",
            "Filter by status.",
            enum_text(WebhookStatus::ALL.map(WebhookStatus::as_str)),
        )
        .paginated()
        .response(OperationResponse::page::<WebhookOfPartner>(
            "Page of endpoints.",
            webhook(),
        ))
}

fn enable() -> Operation {
    write_operation(HttpMethod::Post, "/webhooks/{webhook_id}/enable", "enableWebhook")
        .describe(
            WEBHOOKS,
            "Enable a webhook endpoint",
            "Also after the partner or the service disabled it. Waiting deliveries are retried at once; events older than 24 hours \
             are only in the partner's event feed.",
        )
        .path_parameter("webhook_id", "Endpoint ID.", WebhookId::schema())
        .response(OperationResponse::json::<WebhookOfPartner>(200, "The endpoint after the change.", webhook()))
        .errors(&[Code::WebhookNotFound])
}

fn deliveries() -> Operation {
    read_operation("/deliveries", "listDeliveries")
        .describe(
            WEBHOOKS,
            "List deliveries",
            "Deliveries that failed, wait behind a failed one, or are replayed, newest first, with their attempts. A delivery \
             without failures has no entry.",
        )
        .query_parameter("partner_id", "Filter by partner.", PartnerId::schema())
        .query_parameter("webhook_id", "Filter by endpoint.", WebhookId::schema())
        .query_parameter("order_id", "Filter by order.", OrderId::schema())
        .query_parameter(
            "status",
            "Filter by status.",
            enum_text(DeliveryState::ALL.map(DeliveryState::as_str)),
        )
        .paginated()
        .response(OperationResponse::page::<DeliveryBody>("Page of deliveries.", delivery()))
}

fn replay() -> Operation {
    write_operation(
        HttpMethod::Post,
        "/deliveries/{delivery_id}/replay",
        "replayDelivery",
    )
    .describe(
        WEBHOOKS,
        "Replay a delivery",
        "Sends it again with a new retry window of 24 hours, before waiting deliveries of its order.",
    )
    .path_parameter("delivery_id", "Delivery ID.", DeliveryId::schema())
    .response(OperationResponse::json::<DeliveryBody>(
        200,
        "The delivery after the change.",
        delivery(),
    ))
    .errors(&[Code::DeliveryNotFound])
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
