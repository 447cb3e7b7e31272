//! Webhook endpoints of all partners, delivery attempts, and replay.

use vouchsafe_domain::delivery::attempt::AttemptResult;
use vouchsafe_domain::delivery::view::DeliveryState;
use vouchsafe_domain::webhook::WebhookStatus;
use vouchsafe_wire::operator::webhooks;

use crate::json::Json;
use crate::page::{
    Action, Column, FROM, Input, List, Object, Page, Section, Source, TIME_HINT, TO, View, choice, col,
    filter, labels, target,
};

pub(super) const WEBHOOK_COLUMNS: [Column; 7] = [
    col("Webhook", "webhook_id"),
    col("Partner", "partner_id"),
    col("Status", "status"),
    col("Backlog", "backlog"),
    col("Failures", "consecutive_failures"),
    col("Failing since", "failing_since"),
    col("URL", "url"),
];

const ATTEMPT_COLUMNS: [Column; 10] = [
    col("Time", "at"),
    col("Event", "event"),
    col("Outcome", "outcome"),
    col("Response", "status fault"),
    col("ms", "latency_ms"),
    col("Attempt", "attempt"),
    col("Order", "order_id"),
    col("Delivery", "delivery_id"),
    col("Next attempt", "next_attempt_at"),
    col("First bytes of the response", "answer"),
];

const DELIVERY_COLUMNS: [Column; 7] = [
    col("Delivery", "delivery_id"),
    col("Webhook", "webhook_id"),
    col("Order", "order_id"),
    col("Status", "status"),
    col("Last response", "attempts.last.status attempts.last.fault"),
    col("Failed attempts", "failed_attempts"),
    col("Next attempt", "next_attempt_at"),
];

fn is_disabled(webhook: &Json) -> bool {
    webhook.is("status", "disabled")
}

const REPLAY: Action = Action::new("replay", "Replay", webhooks::REPLAY_DELIVERY)
    .note("Sends the event again. The partner sees the same event ID.")
    .done("The event is sent again.");

pub(super) static PAGES: [Page; 5] = [
    Page {
        path: "/webhooks",
        title: "Webhooks",
        view: View::List(List {
            api: target(webhooks::LIST_WEBHOOKS),
            columns: &WEBHOOK_COLUMNS,
            filters: &[
                filter("partner_id", "Partner ID"),
                choice("status", "Status", labels::<WebhookStatus>),
            ],
            row_actions: &[],
            is_complete: true,
            variants: &[
                ("All", "/webhooks"),
                ("Failing", "/webhooks?status=failing"),
                ("Disabled", "/webhooks?status=disabled"),
                ("Active", "/webhooks?status=active"),
            ],
        }),
        actions: &[],
    },
    Page {
        path: "/webhooks/{webhook_id}",
        title: "Webhook",
        view: View::Object(Object {
            none: "",
            api: Some(target(webhooks::GET_WEBHOOK)),
            name: "webhook_id",
            facts: &[
                col("Status", "status"),
                col("Partner", "partner_id"),
                col("URL", "url"),
                col("Description", "description"),
                col("Events", "events"),
                col("Disabled", "disabled_reason disabled_at"),
                col("Failures in a row", "consecutive_failures"),
                col("Failing since", "failing_since"),
                col("Next attempt", "next_attempt_at"),
                col("Attempts that succeeded", "successful_attempts"),
                col("Attempts that failed", "failed_attempts"),
                col("Share of successes", "success_rate"),
                col("Events not attempted yet", "backlog"),
                col("Oldest of them", "oldest_event_at"),
                col("Node", "node"),
                col("Created", "created_at"),
                col("Changed", "updated_at"),
            ],
            sections: &[
                Section {
                    heading: "Attempts",
                    source: Source::Api {
                        target: target(webhooks::LIST_WEBHOOK_DELIVERIES).query("limit=20"),
                        field: "data",
                        page: "/webhooks/{webhook_id}/attempts",
                    },
                    columns: &ATTEMPT_COLUMNS,
                    row_actions: &[],
                    none: "No attempt is logged.",
                },
                Section {
                    heading: "Deliveries that failed, wait or were replayed",
                    source: Source::Api {
                        target: target(webhooks::LIST_DELIVERIES).query("webhook_id={webhook_id}&limit=20"),
                        field: "data",
                        page: "/deliveries?webhook_id={webhook_id}",
                    },
                    columns: &DELIVERY_COLUMNS,
                    row_actions: &[REPLAY],
                    none: "All events were delivered at the first attempt.",
                },
            ],
        }),
        actions: &[
            Action::new("retry",
                "Retry now", webhooks::RETRY_WEBHOOK)
            .when(|webhook| !is_disabled(webhook))
            .note("Attempts every waiting delivery now.")
            .done("The waiting deliveries are attempted now."),
            Action::new("enable",
                "Enable", webhooks::ENABLE_WEBHOOK)
            .when(is_disabled)
            .note("Events since it was disabled are delivered, too.")
            .done("The endpoint is enabled."),
            Action::new("replay-range", "Replay a range", webhooks::REPLAY_WEBHOOK)
                .inputs(&[
                    Input::line("from", "From").hint(TIME_HINT),
                    Input::line("to", "Until").optional().hint("Empty: now."),
                ])
                .note("Sends every event of the range that the endpoint subscribes to again. The partner sees the same event IDs.")
                .done("The events are sent again."),
        ],
    },
    Page {
        path: "/webhooks/{webhook_id}/attempts",
        title: "Attempts of",
        view: View::List(List {
            api: target(webhooks::LIST_WEBHOOK_DELIVERIES),
            columns: &ATTEMPT_COLUMNS,
            filters: &[
                choice("outcome", "Outcome", labels::<AttemptResult>),
                filter("order_id", "Order ID"),
                filter("delivery_id", "Delivery ID"),
                FROM,
                TO,
            ],
            row_actions: &[],
            is_complete: true,
            variants: &[],
        }),
        actions: &[],
    },
    Page {
        path: "/deliveries",
        title: "Deliveries",
        view: View::List(List {
            api: target(webhooks::LIST_DELIVERIES),
            columns: &DELIVERY_COLUMNS,
            filters: &[
                filter("partner_id", "Partner ID"),
                filter("webhook_id", "Webhook ID"),
                filter("order_id", "Order ID"),
                choice("status", "Status", labels::<DeliveryState>),
            ],
            row_actions: &[],
            is_complete: true,
            variants: &[],
        }),
        actions: &[],
    },
    Page {
        path: "/deliveries/{delivery_id}",
        title: "Delivery",
        view: View::Object(Object {
            none: "",
            api: Some(target(webhooks::GET_DELIVERY)),
            name: "delivery_id",
            facts: &[
                col("Status", "status"),
                col("Webhook", "webhook_id"),
                col("Partner", "partner_id"),
                col("Order", "order_id"),
                col("Event", "event_id"),
                col("Event committed", "event_at"),
                col("Failed attempts", "failed_attempts"),
                col("Next attempt", "next_attempt_at"),
                col("Changed", "updated_at"),
                col("Payload", "payload"),
            ],
            sections: &[Section {
                heading: "Attempts",
                source: Source::Field("attempts"),
                columns: &[
                    col("Time", "at"),
                    col("Response", "status fault"),
                    col("ms", "latency_ms"),
                    col("First bytes of the response", "answer"),
                ],
                row_actions: &[],
                none: "No attempt was made.",
            }],
        }),
        actions: &[REPLAY],
    },
];
