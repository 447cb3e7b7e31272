//! Webhook endpoints of all partners, delivery attempts, and replay.

use vouchsafe_domain::delivery::attempt::AttemptResult;
use vouchsafe_domain::delivery::view::DeliveryState;
use vouchsafe_domain::webhook::WebhookStatus;
use vouchsafe_wire::operator::webhooks;

use crate::json::Json;
use crate::page::{
    Action, Column, FROM, Input, List, Object, Page, Section, Source, TIME_HINT, TO, choice, col, filter,
    labels, target,
};

fn is_disabled(webhook: &Json) -> bool {
    webhook.is("status", "disabled")
}

fn banner(webhook: &Json) -> &'static str {
    if is_disabled(webhook) {
        "This endpoint is disabled: its events wait in the backlog until an operator or the partner enables it."
    } else {
        ""
    }
}

/// A chart of the endpoint's hours.
const fn health(heading: &'static str, columns: &'static [Column]) -> Section {
    let source = Source::Chart {
        target: target(webhooks::GET_WEBHOOK_HEALTH),
        field: "data",
        is_live: false,
        page: "/webhooks/{webhook_id}/health",
        zoom: "",
    };
    Section::new(heading, source, columns, "")
}

const TIME: Column = col("Time", "at");

const REPLAY: Action = Action::new("replay", "Replay", webhooks::REPLAY_DELIVERY)
    .note("Sends the event again. The partner sees the same event ID.")
    .done("The event is sent again.");

pub(super) static PAGES: [Page; 6] = [
    Page::list("/webhooks", "Webhooks", List::of(webhooks::LIST_WEBHOOKS).filters(&[
                filter("partner_id", "Partner ID"),
                choice("status", "Status", labels::<WebhookStatus>),
            ]).variants(&[
                ("All", "/webhooks"),
                ("Failing", "/webhooks?status=failing"),
                ("Disabled", "/webhooks?status=disabled"),
                ("Active", "/webhooks?status=active"),
            ])),
    Page::object("/webhooks/{webhook_id}", "Webhook", Object::of(webhooks::GET_WEBHOOK, "webhook_id", &[
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
            ], &[
                health("Attempts per hour, 7 days", &[TIME, col("Delivered", "delivered"), col("Failed", "failed")]),
                health("Duration of attempts (ms), 7 days", &[TIME, col("Mean", "mean_latency_ms"), col("Longest", "longest_latency_ms")]),
                Section::list("Attempts", target(webhooks::LIST_WEBHOOK_DELIVERIES).query("limit=20"), "/webhooks/{webhook_id}/attempts", "No attempt is logged."),
                Section::list("Deliveries that failed, wait or were replayed", target(webhooks::LIST_DELIVERIES).query("webhook_id={webhook_id}&limit=20"), "/deliveries?webhook_id={webhook_id}", "No attempt has failed, and none was replayed.").row_actions(&[REPLAY]),
            ]).banner(banner)).actions(&[
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
                    Input::field("from", "From").hint(TIME_HINT),
                    Input::field("to", "Until").hint("Empty: now."),
                ])
                .note("Sends every event of the range that the endpoint subscribes to again. The partner sees the same event IDs.")
                .done("The events are sent again."),
        ]),
    Page::object("/webhooks/{webhook_id}/health", "Health of an endpoint", Object::of_sections(&[
                Section::list("Attempts by hour", target(webhooks::GET_WEBHOOK_HEALTH).query("from={from}&to={to}"), "", "No attempt was made in this time."),
            ])),
    Page::list("/webhooks/{webhook_id}/attempts", "Attempts of", List::of(webhooks::LIST_WEBHOOK_DELIVERIES).filters(&[
                choice("outcome", "Outcome", labels::<AttemptResult>),
                filter("order_id", "Order ID"),
                filter("delivery_id", "Delivery ID"),
                FROM,
                TO,
            ])),
    Page::list("/deliveries", "Deliveries", List::of(webhooks::LIST_DELIVERIES).filters(&[
                filter("partner_id", "Partner ID"),
                filter("webhook_id", "Webhook ID"),
                filter("order_id", "Order ID"),
                choice("status", "Status", labels::<DeliveryState>),
            ])),
    Page::object("/deliveries/{delivery_id}", "Delivery", Object::of(webhooks::GET_DELIVERY, "delivery_id", &[
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
            ], &[Section::new("Attempts", Source::Field("attempts"), &[
                    col("Time", "at"),
                    col("Response", "status fault"),
                    col("ms", "latency_ms"),
                    col("First bytes of the response", "answer"),
                ], "No attempt was made.")])).actions(&[REPLAY]),
];
