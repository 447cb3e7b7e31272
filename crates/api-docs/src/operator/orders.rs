//! OpenAPI operations of `/orders`.

use serde_json::{Value, json};
use vouchsafe_domain::envelope::Event;
use vouchsafe_domain::event_kind::EventKind;
use vouchsafe_domain::order::filter::OrderSearch;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::filter::NoFilter;
use vouchsafe_wire::operator::decision::ReasonRequest;
use vouchsafe_wire::operator::orders::OrderOfPartner;
use vouchsafe_wire::operator::orders::fulfil::{FulfilReport, FulfilRequest};

use super::{ORDERS, json_write_operation, read_operation};
use crate::openapi::Operation;
use crate::partner::events::sample;
use crate::partner::example_order;

pub fn search(operation: Operation) -> Operation {
    read_operation(operation, "searchOrders")
        .describe(
            ORDERS,
            "Search orders",
            "Orders of all partners, newest first, with the fields that the partner sees.",
        )
        .list::<OrderSearch, OrderOfPartner<'_>>("Page of orders.", order())
}

pub fn get(operation: Operation) -> Operation {
    read_operation(operation, "getOrder")
        .describe(
            ORDERS,
            "Get an order",
            "With the fields that the partner sees, without codes.",
        )
        .ok::<OrderOfPartner<'_>>("The order.", order())
}

pub fn list_events(operation: Operation) -> Operation {
    read_operation(operation, "listOrderEvents")
        .describe(
            ORDERS,
            "List the events of an order",
            "As the partner's webhooks and event feed have them, oldest first.",
        )
        .list::<NoFilter, Event>("Page of events.", sample(EventKind::OrderDelivered))
}

pub fn approve(operation: Operation) -> Operation {
    decision_operation(operation, "approveOrder")
        .describe(
            ORDERS,
            "Approve an order",
            "Approves an order that waits for approval. Available stock is allocated at once; the rest is bought, or \
             refunded if it cannot be bought.",
        )
        .ok::<OrderOfPartner<'_>>("The order after the decision.", order())
        .errors(&[Code::OrderNotAwaitingApproval])
}

pub fn reject(operation: Operation) -> Operation {
    decision_operation(operation, "rejectOrder")
        .describe(
            ORDERS,
            "Reject an order",
            "Cancels an order that waits for approval and refunds it completely.",
        )
        .ok::<OrderOfPartner<'_>>("The order after the decision.", refunded_order())
        .errors(&[Code::OrderNotAwaitingApproval])
}

pub fn cancel(operation: Operation) -> Operation {
    decision_operation(operation, "cancelOrder")
        .describe(
            ORDERS,
            "Cancel an order",
            "Takes back the vouchers whose codes were not retrieved, and refunds them. The partner's cancel window does not \
             apply. A repeated call returns the same result.",
        )
        .ok::<OrderOfPartner<'_>>("The order after the decision.", refunded_order())
        .errors(&[Code::OrderNotCancellable])
}

pub fn fulfil(operation: Operation) -> Operation {
    let request = json!({
        "product_id": "game-us", "denomination": 25,
        "vouchers": [{ "code": "a-code", "pin": "0000", "expiry": "2099-12-31" }, { "code": "another-code" }],
    });
    let report = json!({ "imported": 2, "duplicates": 0, "order": order() });
    json_write_operation(operation, "fulfilOrder")
        .describe(
            ORDERS,
            "Fulfil an order manually",
            "Stores the given vouchers and delivers them to the order at once, whatever its vendor. A code is stored once, so \
             the call can be repeated. Accepts at most as many new vouchers as the order needs. If one is invalid, nothing \
             is stored and `details` lists all errors.",
        )
        .json_body::<FulfilRequest>(request)
        .ok::<FulfilReport<'_>>("Result.", report)
        .errors(&[
            Code::OrderNotFulfillable,
            Code::IdempotencyInProgress,
            Code::ServiceUnavailable,
        ])
}

fn decision_operation(operation: Operation, id: &'static str) -> Operation {
    json_write_operation(operation, id)
        .json_body::<ReasonRequest>(json!({ "reason": "agreed with the buyer by telephone" }))
        .errors(&[Code::IdempotencyInProgress])
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
    order
}
