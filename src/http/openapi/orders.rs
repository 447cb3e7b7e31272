//! What is said of `/orders`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};
use vouchsafe_actors::domain::ids::OrderId;
use vouchsafe_actors::domain::order::OrderStatus;

use super::{ORDERS, identified, signed};
use crate::access::idempotency::MAX_KEY_LENGTH;
use crate::errors::Code;
use crate::http::OrderBody;
use crate::http::orders::cancel::CancelRequest;
use crate::http::orders::request::OrderRequest;
use crate::http::vouchers::Codes;
use crate::openapi::{Answer, Header, Operation, filter, text, word};

/// `POST /orders`.
pub(super) fn place() -> Operation {
    let request = json!({
        "items": [{ "product_id": "sbx-instant", "denomination": 25, "quantity": 1 }],
        "currency": "USD",
        "reference": "po-1001",
        "metadata": { "campaign": "spring" },
    });
    signed(HttpMethod::Post, "/orders", "placeOrder")
        .says(
            ORDERS,
            "Place an order",
            "Debits the wallet for the whole order and allocates vouchers: at once where all are in stock, otherwise when \
             the vendor delivers or an operator has approved. Nothing is done where it is refused.",
        )
        .required_header(
            "Idempotency-Key",
            "Your name for this order: the same request under the same key is executed once, and answered alike for 24 \
             hours.",
            key(),
        )
        .takes::<OrderRequest>(request)
        .answers(placed(201, "Delivered: every voucher is allocated.", delivered()))
        .answers(placed(202, "Accepted: vouchers are still to come.", pending()))
        .refuses_for_good(&[Code::InsufficientFunds, Code::InsufficientInventory])
        .refuses(&[
            Code::MissingIdempotencyKey,
            Code::ProductNotFound,
            Code::ProductUnavailable,
            Code::IdempotencyInProgress,
            Code::ValidationFailed,
            Code::DenominationNotAllowed,
            Code::CurrencyMismatch,
            Code::IdempotencyKeyReused,
        ])
}

/// `GET /orders`.
pub(super) fn list() -> Operation {
    identified(HttpMethod::Get, "/orders", "listOrders")
        .says(
            ORDERS,
            "List orders",
            "Your orders, newest first, each as it is read by its id.",
        )
        .query(
            "status",
            "Only those in this status.",
            word(OrderStatus::ALL.map(OrderStatus::as_str)),
        )
        .query("reference", "Only those with this reference.", filter("po-1001"))
        .dated()
        .paged()
        .answers(Answer::page_of::<OrderBody<'_>>("Orders.", delivered()))
}

/// `GET /orders/{order_id}`.
pub(super) fn get() -> Operation {
    identified(HttpMethod::Get, "/orders/{order_id}", "getOrder")
        .says(
            ORDERS,
            "Get an order",
            "Where the order is, what is allocated, and how it came there.",
        )
        .path("order_id", "Which order.", OrderId::schema())
        .header(
            "Prefer",
            "`wait=N`, N up to 30: an order that is PENDING or PROCESSING is answered when its status has changed, or after \
             N seconds.",
            text("wait=20"),
        )
        .answers(
            Answer::of::<OrderBody<'_>>(200, "The order.", delivered()).with(Header::PreferenceApplied),
        )
        .refuses(&[Code::OrderNotFound])
}

/// `GET /orders/{order_id}/vouchers`.
pub(super) fn codes() -> Operation {
    let codes = json!({
        "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "data": [{
            "voucher_id": "vch_0198c1f2a3b47c5d8e9f0a1b2c3d4e60", "product_id": "sbx-instant", "denomination": 25,
            "currency": "USD", "expiry": "2027-11-20",
            "credentials": [{ "type": "code", "value": "SANDBOX-0000-0001" }, { "type": "pin", "value": "1234" }],
        }],
    });
    signed(HttpMethod::Get, "/orders/{order_id}/vouchers", "getVoucherCodes")
        .says(
            ORDERS,
            "Retrieve the codes of an order",
            "The one place where codes are given out. Signed, though it is a GET; every reading is recorded before the \
             answer leaves, and the answer is not to be cached.",
        )
        .path("order_id", "Which order.", OrderId::schema())
        .answers(Answer::of::<Codes<'_>>(200, "The codes of what is allocated.", codes))
        .refuses(&[Code::OrderNotFound, Code::OrderNotReady])
}

/// `POST /orders/{order_id}/cancel`.
pub(super) fn cancel() -> Operation {
    signed(HttpMethod::Post, "/orders/{order_id}/cancel", "cancelOrder")
        .says(
            ORDERS,
            "Cancel an order",
            "All vouchers go back, and all money returns to the wallet. Possible while no code of the order was retrieved, \
             within the time that was agreed (a day, unless you were told otherwise), before the first voucher expires, and \
             for vouchers that were bought for the order only where their product takes them back. A second call is answered \
             as the first one was.",
        )
        .path("order_id", "Which order.", OrderId::schema())
        .may_take::<CancelRequest>(json!({ "reason": "ordered twice" }))
        .answers(Answer::of::<OrderBody<'_>>(
            200,
            "The order, refunded.",
            cancelled(),
        ))
        .refuses(&[Code::OrderNotFound, Code::OrderNotCancellable, Code::ValidationFailed])
}

fn placed(status: u16, description: &'static str, example: Value) -> Answer {
    Answer::of::<OrderBody<'_>>(status, description, example)
        .with(Header::Location)
        .with(Header::Replayed)
}

pub(super) fn key() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(MAX_KEY_LENGTH))
        .pattern(Some("^[!-~]+$"))
        .examples(["po-1001"])
        .build()
}

/// An order whose vouchers are all there.
pub(crate) fn delivered() -> Value {
    let at = "2026-11-20T12:00:00.123456Z";
    json!({
        "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "status": "DELIVERED",
        "total_amount": 25,
        "currency": "USD",
        "fulfilled_from": "cache",
        "reference": "po-1001",
        "metadata": { "campaign": "spring" },
        "items": [{
            "product_id": "sbx-instant", "denomination": 25, "quantity": 1, "delivered": 1, "pending": 0, "failed": 0,
        }],
        "vouchers": [{
            "voucher_id": "vch_0198c1f2a3b47c5d8e9f0a1b2c3d4e60", "product_id": "sbx-instant", "denomination": 25,
            "expiry": "2027-11-20",
        }],
        "refunded_amount": 0,
        "closed": true,
        "pending_reason": null,
        "timeline": [{ "status": "DELIVERED", "at": at, "by": "partner", "reason": null }],
        "created_at": at,
        "updated_at": at,
    })
}

fn cancelled() -> Value {
    let mut order = delivered();
    let at = order["created_at"].clone();
    order["status"] = json!("REFUNDED");
    order["fulfilled_from"] = Value::Null;
    order["items"][0]["delivered"] = json!(0);
    order["items"][0]["failed"] = json!(1);
    order["vouchers"] = json!([]);
    order["refunded_amount"] = order["total_amount"].clone();
    for (status, reason) in [("CANCELLED", json!("ordered twice")), ("REFUNDED", Value::Null)] {
        let milestone = json!({ "status": status, "at": at, "by": "partner", "reason": reason });
        order["timeline"]
            .as_array_mut()
            .into_iter()
            .for_each(|timeline| timeline.push(milestone.clone()));
    }
    order
}

fn pending() -> Value {
    let mut order = delivered();
    let at = order["created_at"].clone();
    order["status"] = json!("PENDING");
    order["fulfilled_from"] = Value::Null;
    order["items"][0]["delivered"] = json!(0);
    order["items"][0]["pending"] = json!(1);
    order["vouchers"] = json!([]);
    order["closed"] = json!(false);
    order["pending_reason"] = json!("VENDOR");
    order["timeline"] = json!([{ "status": "PENDING", "at": at, "by": "partner", "reason": null }]);
    order
}
