//! OpenAPI operations of `/orders`.

use serde_json::{Value, json};
use vouchsafe_wire::partner::operations;

use super::describe;
use crate::openapi::{Operation, ResponseHeader, text};

pub(super) fn orders() -> Vec<Operation> {
    vec![
        describe(operations::PLACE_ORDER, "Debits the wallet for the whole order and allocates vouchers: \
            immediately if all are in stock, otherwise when the vendor delivers or an operator approves. A \
            rejected order has no effect.")
            .idempotent("order")
            .json_body(json!({
                "items": [{ "product_id": "sbx-instant", "denomination": 25.0, "quantity": 1 }],
                "currency": "USD",
                "reference": "po-1001",
                "metadata": { "campaign": "spring" },
            }))
            .responses([(201, "Delivered: all vouchers are allocated.", delivered_order()), (202, "Accepted: vouchers are still pending.", pending_order())])
            .with_header(ResponseHeader::Location)
            .with_header(ResponseHeader::Replayed),
        describe(operations::LIST_ORDERS, "Lists your orders, newest first, in the same format as `GET /orders/{order_id}`.")
            .list("A page of orders.", delivered_order()),
        describe(operations::GET_ORDER, "Returns an order with its items, allocated vouchers and status history.")
            .header_parameter("Prefer",
            "`wait=N`, up to 30 seconds: if the order is PENDING or PROCESSING, the server responds when its status changes or \
             after N seconds. With `wait=N; until=closed` it waits until the order is `closed`.",
            text("wait=20"))
            .ok("The order.", delivered_order())
            .with_header(ResponseHeader::PreferenceApplied),
        describe(operations::GET_VOUCHER_CODES, "Returns the voucher codes. This is the only endpoint that \
            returns them. The request must be signed although it is a GET. Every retrieval is written to \
            the audit log before the response is sent. Do not cache the response.")
            .ok("The codes of all allocated vouchers.", json!({
                "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
                "data": [{
                    "voucher_id": "vch_0198c1f2a3b47c5d8e9f0a1b2c3d4e60", "product_id": "sbx-instant", "denomination": 25.0,
                    "currency": "USD", "expiry": "2027-11-20",
                    "credentials": [{ "type": "code", "value": "SANDBOX-0000-0001" }, { "type": "pin", "value": "1234" }],
                }],
            })),
        describe(operations::LIST_VOUCHER_ACCESS, "Lists every response with codes of the order, newest \
            first, with the credential and the address of its request, whichever of your credentials sent \
            it. The entries come from the append-only audit log. They never contain a code.")
            .list("A page of reads.", json!({
                "at": "2026-11-20T12:05:00.123456Z", "credential_id": "cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
                "address": "203.0.113.7", "vouchers": 1, "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
            })),
        describe(operations::CANCEL_ORDER, "Returns all vouchers and refunds the whole order to the \
            wallet. An order can be cancelled while none of its codes was retrieved, within the agreed \
            cancellation period (24 hours by default), and before its first voucher expires. Vouchers that \
            were bought for the order must also be of a returnable product. A repeated call returns the \
            same result.")
            .optional_json_body(json!({ "reason": "ordered twice" }))
            .ok("The refunded order.",
            cancelled_order()),
    ]
}

/// Example of a delivered order.
pub(crate) fn delivered_order() -> Value {
    let at = "2026-11-20T12:00:00.123456Z";
    json!({
        "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "status": "DELIVERED",
        "total_amount": 25.0,
        "currency": "USD",
        "fulfilled_from": "cache",
        "reference": "po-1001",
        "metadata": { "campaign": "spring" },
        "items": [{
            "product_id": "sbx-instant", "denomination": 25.0, "quantity": 1, "delivered": 1, "pending": 0, "failed": 0,
            "cancelled": 0,
        }],
        "vouchers": [{
            "voucher_id": "vch_0198c1f2a3b47c5d8e9f0a1b2c3d4e60", "product_id": "sbx-instant", "denomination": 25.0,
            "expiry": "2027-11-20", "first_retrieved_at": null,
        }],
        "refunded_amount": 0.0,
        "closed": true,
        "pending_reason": null,
        "timeline": [{ "status": "DELIVERED", "at": at, "by": "partner", "reason": null }],
        "created_at": at,
        "updated_at": at,
    })
}

fn cancelled_order() -> Value {
    let mut order = refunded_order("partner", "ordered twice", "cancelled");
    order["fulfilled_from"] = json!("cache");
    order["returned_vouchers"] = delivered_order()["vouchers"].clone();
    order
}

/// Example of an order whose approval was rejected.
pub(super) fn rejected_order() -> Value {
    refunded_order("operator", "decided by the partner in the sandbox", "cancelled")
}

/// Example of an order of which a vendor delivered nothing.
pub(super) fn unfilled_order() -> Value {
    refunded_order("system", "no voucher of the order is available", "failed")
}

/// `count` is the field of the item that counts its voucher.
fn refunded_order(by: &str, reason: &str, count: &str) -> Value {
    let mut order = delivered_order();
    let at = order["created_at"].clone();
    order["status"] = json!("REFUNDED");
    order["fulfilled_from"] = Value::Null;
    order["items"][0]["delivered"] = json!(0);
    order["items"][0][count] = json!(1);
    order["vouchers"] = json!([]);
    order["refunded_amount"] = order["total_amount"].clone();
    for (status, reason) in [("CANCELLED", json!(reason)), ("REFUNDED", Value::Null)] {
        let milestone = json!({ "status": status, "at": at, "by": by, "reason": reason });
        order["timeline"]
            .as_array_mut()
            .into_iter()
            .for_each(|timeline| timeline.push(milestone.clone()));
    }
    order
}

fn pending_order() -> Value {
    let mut order = delivered_order();
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
