//! What is said of orders, as operators look at them.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_actors::domain::ids::{OrderId, PartnerId};
use vouchsafe_actors::domain::order::OrderStatus;

use super::{ORDERS, looks, writes_json};
use crate::admin::decision::Because;
use crate::admin::orders::{FulfilRequest, Fulfilled, OrderOfPartner};
use crate::errors::Code;
use crate::http::openapi::example_order;
use crate::openapi::{Answer, Operation, filter, word};

pub(super) fn operations() -> [Operation; 6] {
    [search(), get(), approve(), reject(), cancel(), fulfil()]
}

fn search() -> Operation {
    looks("/orders", "searchOrders")
        .says(
            ORDERS,
            "Search orders",
            "Every partner's orders, newest first, as their partners see them.",
        )
        .query("partner_id", "Only those of this partner.", PartnerId::schema())
        .query("order_id", "Only this one.", OrderId::schema())
        .query(
            "status",
            "Only those in this status.",
            word(OrderStatus::ALL.map(OrderStatus::as_str)),
        )
        .query("reference", "Only those with this reference.", filter("po-1001"))
        .dated()
        .paged()
        .answers(Answer::page_of::<OrderOfPartner<'_>>("Orders.", order()))
}

fn get() -> Operation {
    looks("/orders/{order_id}", "getOrder")
        .says(ORDERS, "Get an order", "As its partner sees it; never a code.")
        .path("order_id", "Which order.", OrderId::schema())
        .answers(Answer::of::<OrderOfPartner<'_>>(200, "The order.", order()))
        .refuses(&[Code::OrderNotFound])
}

fn approve() -> Operation {
    decides("/orders/{order_id}/approve", "approveOrder")
        .says(
            ORDERS,
            "Approve an order",
            "Lets an order go on that waits for approval: what is in stock is allocated at once, the rest is bought where it \
             can be, and paid back where not.",
        )
        .answers(Answer::of::<OrderOfPartner<'_>>(200, "The order since.", order()))
        .refuses(&[Code::OrderNotAwaitingApproval])
}

fn reject() -> Operation {
    decides("/orders/{order_id}/reject", "rejectOrder")
        .says(
            ORDERS,
            "Reject an order",
            "Ends an order that waits for approval; all of it is paid back.",
        )
        .answers(Answer::of::<OrderOfPartner<'_>>(
            200,
            "The order since.",
            refunded(),
        ))
        .refuses(&[Code::OrderNotAwaitingApproval])
}

fn cancel() -> Operation {
    decides("/orders/{order_id}/cancel", "cancelOrder")
        .says(
            ORDERS,
            "Cancel an order",
            "Takes back what of an order was not retrieved, and pays it back; the partner's time to cancel does not bind. A \
             second call answers as the first did.",
        )
        .answers(Answer::of::<OrderOfPartner<'_>>(200, "The order since.", refunded()))
        .refuses(&[Code::OrderNotCancellable])
}

fn fulfil() -> Operation {
    let request = json!({
        "product_id": "game-us", "denomination": 25,
        "vouchers": [{ "code": "a-code", "pin": "0000", "expiry": "2099-12-31" }, { "code": "another-code" }],
    });
    let report = json!({ "imported": 2, "duplicates": 0, "order": order() });
    writes_json(HttpMethod::Post, "/orders/{order_id}/fulfil", "fulfilOrder")
        .says(
            ORDERS,
            "Fulfil an order by hand",
            "Brings in vouchers that an order waits for, whoever its vendor is: they are stored and delivered at once. A code              comes in once, so the same call may be made again. No more new ones than the order waits for; with one fault              nothing is stored, and `details` names each.",
        )
        .path("order_id", "Which order.", OrderId::schema())
        .takes::<FulfilRequest>(request)
        .answers(Answer::of::<Fulfilled<'_>>(200, "What came of it.", report))
        .refuses(&[
            Code::OrderNotFound,
            Code::OrderNotFulfillable,
            Code::IdempotencyInProgress,
            Code::ServiceUnavailable,
        ])
}

fn decides(path: &str, id: &'static str) -> Operation {
    writes_json(HttpMethod::Post, path, id)
        .path("order_id", "Which order.", OrderId::schema())
        .takes::<Because>(json!({ "reason": "agreed with the buyer by telephone" }))
        .refuses(&[Code::OrderNotFound, Code::IdempotencyInProgress])
}

fn refunded() -> Value {
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
