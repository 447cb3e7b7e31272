//! OpenAPI operations of `/orders`.

use serde_json::{Value, json};
use vouchsafe_domain::event_kind::EventKind;
use vouchsafe_wire::operator::orders;

use super::describe;
use crate::openapi::Operation;
use crate::partner::events::sample;
use crate::partner::example_order;

pub(super) fn orders() -> [Operation; orders::OPERATIONS.len()] {
    [
        describe(orders::SEARCH_ORDERS, "Orders of all partners, newest first, with the fields that the partner sees.")
            .list("Page of orders.", order()),
        describe(orders::GET_ORDER, "With the fields that the partner sees, without codes.")
            .ok("The order.", order()),
        describe(orders::LIST_ORDER_EVENTS, "As the partner's webhooks and event feed have them, oldest first.")
            .list("Page of events.", sample(EventKind::OrderDelivered)),
        describe(orders::APPROVE_ORDER, "Approves an order that waits for approval. Available stock is \
            allocated at once; the rest is bought, or refunded if it cannot be bought.")
            .json_body(reason())
            .ok("The order after the decision.", order()),
        describe(orders::REJECT_ORDER, "Cancels an order that waits for approval and refunds it completely.")
            .json_body(reason())
            .ok("The order after the decision.", refunded_order()),
        describe(orders::CANCEL_ORDER, "Takes back the vouchers whose codes were not retrieved, and \
            refunds them. The partner's cancel window does not apply. A repeated call returns the same \
            result.")
            .json_body(reason())
            .ok("The order after the decision.", refunded_order()),
        describe(orders::ERASE_ORDER, "Removes reference, metadata and the reasons of the timeline of a \
            closed order for ever. Vouchers, amounts, events and the audit trail stay. A repeated call \
            changes nothing.")
            .json_body(erasure_reason())
            .ok("What was erased.", json!({ "orders": 1, "payouts": 0, "next_after": null })),
        describe(orders::FULFIL_ORDER, "Stores the given vouchers and delivers them to the order at once, \
            whatever its vendor. A code is stored once, so the call can be repeated. Accepts at most as \
            many new vouchers as the order needs. If one is invalid, nothing is stored and `details` lists \
            all errors.")
            .json_body(json!({
                "product_id": "game-us", "denomination": 25,
                "vouchers": [{ "code": "a-code", "pin": "0000", "expiry": "2099-12-31" }, { "code": "another-code" }],
            }))
            .ok("Result.", json!({ "imported": 2, "duplicates": 0, "order": order() })),
    ]
}

pub(super) fn erasure_reason() -> Value {
    json!({ "reason": "request of the buyer of 24 November" })
}

fn reason() -> Value {
    json!({ "reason": "agreed with the buyer by telephone" })
}

fn refunded_order() -> Value {
    let mut order = order();
    let entered = |status: &str| json!({ "status": status, "at": "2026-11-20T12:05:00.123456Z", "by": "operator", "reason": null });
    order["status"] = "REFUNDED".into();
    order["fulfilled_from"] = Value::Null;
    order["vouchers"] = json!([]);
    order["refunded_amount"] = order["total_amount"].clone();
    for item in order["items"].as_array_mut().into_iter().flatten() {
        item["cancelled"] = item["quantity"].clone();
        item["delivered"] = 0.into();
    }
    if let Some(timeline) = order["timeline"].as_array_mut() {
        timeline.extend(["CANCELLED", "REFUNDED"].map(entered));
    }
    order
}

fn order() -> Value {
    let mut order = example_order();
    order["partner_id"] = "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f".into();
    order["trace"] = json!({
        "trace_id": "0198c1f2a3b47c5d8e9f0a1b2c3d4e60", "admission_us": 412, "holds_us": 95, "queue_us": 1830,
    });
    order
}
