//! OpenAPI operations of `/sandbox`. Both environments document them, although production has no such routes:
//! partners generate one client.

use serde_json::{Value, json};
use vouchsafe_wire::partner::sandbox;

use super::describe;
use super::orders::{delivered_order, rejected_order, unfilled_order};
use crate::openapi::Operation;

pub(super) fn sandbox() -> [Operation; sandbox::OPERATIONS.len()] {
    [
        describe(sandbox::REQUEST_SANDBOX_FAULT, "Sandbox only. Your next orders meet the fault, `count` times, until `expires_in_seconds` have passed. A fault replaces \
             an earlier one of its kind. Other partners are not affected. A restart of the service ends all faults.")
            .json_body(json!({ "fault": "SERVICE_UNAVAILABLE", "count": 2 }))
            .created("The fault is active.", fault()),
        describe(sandbox::LIST_SANDBOX_FAULTS, "Sandbox only. Lists the faults that your next orders can still meet, sorted by kind.")
            .list("A page of faults.", fault()),
        describe(sandbox::CLEAR_SANDBOX_FAULTS, "Sandbox only. Ends your faults at once.")
            .no_content("No fault is active."),
        describe(sandbox::ADVANCE_SANDBOX_CLOCK, "Sandbox only. Everything of yours that exists becomes older by `advance_seconds`: idempotency keys, the deliveries that \
             wait for your endpoints, and the time in which orders can be cancelled. What comes later has its full time. Times in responses \
             stay real. Other partners are not affected, and a clock never goes back.")
            .json_body(json!({ "advance_seconds": 86_400 }))
            .ok("The clock after the advance.", json!({ "now": "2026-11-21T12:00:00.123456Z", "advanced_seconds": 86_400 })),
        describe(sandbox::APPROVE_SANDBOX_ORDER, "Sandbox only. Approves an order that waits for approval, as an operator would: what is in stock is delivered, the \
             rest is bought or refunded. The audit log names you.")
            .ok("The order after the approval.", delivered_order()),
        describe(sandbox::REJECT_SANDBOX_ORDER, "Sandbox only. Rejects an order that waits for approval, as an operator would: it is cancelled and refunded. The \
             audit log names you.")
            .ok("The refunded order.", rejected_order()),
        describe(sandbox::ADVANCE_SANDBOX_ORDER, "Sandbox only. The mock vendor delivers the next vouchers of an order with the `pending_reason` `VENDOR` now. What \
             remains stays pending.")
            .optional_json_body(json!({ "quantity": 1 }))
            .ok("The order after the delivery.", delivered_order()),
        describe(sandbox::FAIL_SANDBOX_ORDER, "Sandbox only. The mock vendor refuses everything that it has not delivered of an order with the `pending_reason` \
             `VENDOR`. The rest is refunded and the order closed: it stays `PARTIALLY_DELIVERED`, or is cancelled and refunded if \
             nothing was delivered.")
            .ok("The closed order.", unfilled_order()),
    ]
}

fn fault() -> Value {
    json!({
        "fault": "SERVICE_UNAVAILABLE", "remaining": 2, "delay_seconds": null, "expires_at": "2026-11-20T12:10:00.123456Z",
    })
}
