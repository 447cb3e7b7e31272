//! OpenAPI operations of `/orders`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::order::OrderStatus;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::decision::ReasonRequest;
use vouchsafe_wire::operator::orders::OrderOfPartner;
use vouchsafe_wire::operator::orders::fulfil::{FulfilReport, FulfilRequest};

use super::{ORDERS, json_write_operation, read_operation};
use crate::api::docs::openapi::{Operation, OperationResponse, enum_text, filter};
use crate::api::docs::partner::example_order;

pub(super) fn operations() -> [Operation; 6] {
    [search(), get(), approve(), reject(), cancel(), fulfil()]
}

fn search() -> Operation {
    read_operation("/orders", "searchOrders")
        .describe(
            ORDERS,
            "Search orders",
            "Orders of all partners, newest first, with the fields that the partner sees.",
        )
        .query_parameter("partner_id", "Filter by partner.", PartnerId::schema())
        .query_parameter("order_id", "Filter by order ID.", OrderId::schema())
        .query_parameter(
            "status",
            "Filter by status.",
            enum_text(OrderStatus::ALL.map(OrderStatus::as_str)),
        )
        .query_parameter(
            "reference",
            "Filter by the partner's reference.",
            filter("po-1001"),
        )
        .with_period()
        .paginated()
        .response(OperationResponse::page::<OrderOfPartner<'_>>(
            "Page of orders.",
            order(),
        ))
}

fn get() -> Operation {
    read_operation("/orders/{order_id}", "getOrder")
        .describe(
            ORDERS,
            "Get an order",
            "With the fields that the partner sees, without codes.",
        )
        .path_parameter("order_id", "Order ID.", OrderId::schema())
        .response(OperationResponse::json::<OrderOfPartner<'_>>(
            200,
            "The order.",
            order(),
        ))
        .errors(&[Code::OrderNotFound])
}

fn approve() -> Operation {
    decision_operation("/orders/{order_id}/approve", "approveOrder")
        .describe(
            ORDERS,
            "Approve an order",
            "Approves an order that waits for approval. Available stock is allocated at once; the rest is bought, or \
             refunded if it cannot be bought.",
        )
        .response(OperationResponse::json::<OrderOfPartner<'_>>(200, "The order after the decision.", order()))
        .errors(&[Code::OrderNotAwaitingApproval])
}

fn reject() -> Operation {
    decision_operation("/orders/{order_id}/reject", "rejectOrder")
        .describe(
            ORDERS,
            "Reject an order",
            "Cancels an order that waits for approval and refunds it completely.",
        )
        .response(OperationResponse::json::<OrderOfPartner<'_>>(
            200,
            "The order after the decision.",
            refunded_order(),
        ))
        .errors(&[Code::OrderNotAwaitingApproval])
}

fn cancel() -> Operation {
    decision_operation("/orders/{order_id}/cancel", "cancelOrder")
        .describe(
            ORDERS,
            "Cancel an order",
            "Takes back the vouchers whose codes were not retrieved, and refunds them. The partner's cancel window does not \
             apply. A repeated call returns the same result.",
        )
        .response(OperationResponse::json::<OrderOfPartner<'_>>(200, "The order after the decision.", refunded_order()))
        .errors(&[Code::OrderNotCancellable])
}

fn fulfil() -> Operation {
    let request = json!({
        "product_id": "game-us", "denomination": 25,
        "vouchers": [{ "code": "a-code", "pin": "0000", "expiry": "2099-12-31" }, { "code": "another-code" }],
    });
    let report = json!({ "imported": 2, "duplicates": 0, "order": order() });
    json_write_operation(HttpMethod::Post, "/orders/{order_id}/fulfil", "fulfilOrder")
        .describe(
            ORDERS,
            "Fulfil an order manually",
            "Stores the given vouchers and delivers them to the order at once, whatever its vendor. A code is stored once, so \
             the call can be repeated. Accepts at most as many new vouchers as the order needs. If one is invalid, nothing \
             is stored and `details` lists all errors.",
        )
        .path_parameter("order_id", "Order ID.", OrderId::schema())
        .json_body::<FulfilRequest>(request)
        .response(OperationResponse::json::<FulfilReport<'_>>(200, "Result.", report))
        .errors(&[
            Code::OrderNotFound,
            Code::OrderNotFulfillable,
            Code::IdempotencyInProgress,
            Code::ServiceUnavailable,
        ])
}

fn decision_operation(path: &str, id: &'static str) -> Operation {
    json_write_operation(HttpMethod::Post, path, id)
        .path_parameter("order_id", "Order ID.", OrderId::schema())
        .json_body::<ReasonRequest>(json!({ "reason": "agreed with the buyer by telephone" }))
        .errors(&[Code::OrderNotFound, Code::IdempotencyInProgress])
}

fn refunded_order() -> Value {
    let mut order = order();
    let entered = |status: &str| json!({ "status": status, "at": "2026-11-20T12:05:00.123456Z", "by": "operator", "reason": null });
    order["status"] = "REFUNDED".into();
    order["fulfilled_from"] = Value::Null;
    order["vouchers"] = json!([]);
    order["refunded_amount"] = order["total_amount"].clone();
    for item in order["items"].as_array_mut().into_iter().flatten() {
        item["failed"] = item["quantity"].clone();
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
