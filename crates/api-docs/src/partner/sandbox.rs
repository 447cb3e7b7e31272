//! OpenAPI operations of `/sandbox`. Both environments document them, although production has no such routes: partners generate
//! one client.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use vouchsafe_domain::ids::OrderId;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::filter::NoFilter;
use vouchsafe_wire::partner::orders::body::OrderBody;
use vouchsafe_wire::partner::sandbox::{AdvanceRequestBody, FaultBody, FaultRequestBody};

use super::orders::{delivered_order, rejected_order, unfilled_order};
use super::{SANDBOX, signed_operation, unsigned_operation};
use crate::openapi::{Operation, OperationResponse};

pub fn put_fault(operation: Operation) -> Operation {
    signed_operation(operation, "requestSandboxFault")
        .describe(
            SANDBOX,
            "Request a fault",
            "Sandbox only. Your next orders meet the fault, `count` times, until `expires_in_seconds` have passed. A fault replaces \
             an earlier one of its kind. Other partners are not affected. A restart of the service ends all faults.",
        )
        .json_body::<FaultRequestBody>(json!({ "fault": "SERVICE_UNAVAILABLE", "count": 2 }))
        .created::<FaultBody>("The fault is active.", fault())
        .errors(&[Code::ValidationFailed])
}

pub fn list_faults(operation: Operation) -> Operation {
    unsigned_operation(operation, "listSandboxFaults")
        .describe(
            SANDBOX,
            "List active faults",
            "Sandbox only. Lists the faults that your next orders can still meet, sorted by kind.",
        )
        .list::<NoFilter, FaultBody>("A page of faults.", fault())
}

pub fn clear_faults(operation: Operation) -> Operation {
    signed_operation(operation, "clearSandboxFaults")
        .describe(
            SANDBOX,
            "End all faults",
            "Sandbox only. Ends your faults at once.",
        )
        .response(OperationResponse::empty(204, "No fault is active."))
}

pub fn approve_order(operation: Operation) -> Operation {
    order_operation(operation, "approveSandboxOrder")
        .describe(
            SANDBOX,
            "Approve an order",
            "Sandbox only. Approves an order that waits for approval, as an operator would: what is in stock is delivered, the \
             rest is bought or refunded. The audit log names you.",
        )
        .ok::<OrderBody<'_>>("The order after the approval.", delivered_order())
        .errors(&[Code::OrderNotAwaitingApproval])
}

pub fn reject_order(operation: Operation) -> Operation {
    order_operation(operation, "rejectSandboxOrder")
        .describe(
            SANDBOX,
            "Reject an order",
            "Sandbox only. Rejects an order that waits for approval, as an operator would: it is cancelled and refunded. The \
             audit log names you.",
        )
        .ok::<OrderBody<'_>>("The refunded order.", rejected_order())
        .errors(&[Code::OrderNotAwaitingApproval])
}

pub fn advance_order(operation: Operation) -> Operation {
    order_operation(operation, "advanceSandboxOrder")
        .describe(
            SANDBOX,
            "Deliver the next vouchers of an order",
            "Sandbox only. The mock vendor delivers the next vouchers of an order with the `pending_reason` `VENDOR` now. What \
             remains stays pending.",
        )
        .optional_json_body::<AdvanceRequestBody>(json!({ "quantity": 1 }))
        .ok::<OrderBody<'_>>("The order after the delivery.", delivered_order())
        .errors(&[Code::OrderNotFulfillable, Code::ValidationFailed])
}

pub fn fail_order(operation: Operation) -> Operation {
    order_operation(operation, "failSandboxOrder")
        .describe(
            SANDBOX,
            "Fail the rest of an order",
            "Sandbox only. The mock vendor refuses everything that it has not delivered of an order with the `pending_reason` \
             `VENDOR`. The rest is refunded and the order closed: it stays `PARTIALLY_DELIVERED`, or is cancelled and refunded if \
             nothing was delivered.",
        )
        .ok::<OrderBody<'_>>("The closed order.", unfilled_order())
        .errors(&[Code::OrderNotFulfillable])
}

fn order_operation(operation: Operation, id: &'static str) -> Operation {
    signed_operation(operation, id)
        .path_parameter("order_id", "Order id.", OrderId::schema())
        .errors(&[Code::OrderNotFound])
}

fn fault() -> Value {
    json!({
        "fault": "SERVICE_UNAVAILABLE", "remaining": 2, "delay_seconds": null, "expires_at": "2026-11-20T12:10:00.123456Z",
    })
}
