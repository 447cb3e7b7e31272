//! OpenAPI operations of `/vendors` and `/purchases`.

use serde_json::{Value, json};
use vouchsafe_wire::operator::vendors;

use super::describe;
use crate::openapi::Operation;

pub(super) fn vendors() -> [Operation; vendors::OPERATIONS.len()] {
    [
        describe(vendors::LIST_VENDORS, "Sorted by ID, without credentials. Each node has its own circuit \
            breakers: `circuit` is the state on the node that responded.")
            .list("Page of vendors.", vendor_with_circuit()),
        describe(vendors::GET_VENDOR, "Without its credentials. `circuit` is the state on the node that responded.")
            .ok("The vendor.", vendor_with_circuit()),
        describe(vendors::PUT_VENDOR, "Replaces all fields. Omitted credentials stay unchanged, unless `url` changes.")
            .json_body(json!({
                "adapter": "http", "url": "https://vendor.example/vouchsafe", "credentials": "what-the-vendor-gave-us",
                "concurrency": 8,
            }))
            .responses([(200, "Replaced.", vendor()), (201, "Created.", vendor())]),
        describe(vendors::LIST_PURCHASES, "Purchases from vendors for orders, newest first, with the last \
            vendor response. Never quotes a vendor.")
            .list("Page of purchases.", purchase()),
        describe(vendors::GET_PURCHASE, "With the last vendor response. Never quotes a vendor.")
            .ok("The purchase.", purchase()),
        describe(vendors::END_PURCHASE, "Ends a purchase whose outcome the vendor cannot tell. Later \
            responses of the vendor are ignored, and the missing vouchers of the order are refunded. A \
            repeated call returns the same result.")
            .json_body(json!({ "reason": "the vendor has closed" }))
            .ok("The ended purchase.", ended_purchase()),
    ]
}

fn ended_purchase() -> Value {
    let mut ended = purchase();
    ended["state"] = "ended".into();
    ended["last_response"] = "ENDED".into();
    ended["last_message"] = "ended by an operator: the vendor has closed".into();
    ended["next_attempt_at"] = Value::Null;
    ended
}

fn vendor_with_circuit() -> Value {
    let mut vendor = vendor();
    vendor["circuit"] = json!({
        "node": "node-1", "state": "open", "since": "2026-11-20T12:00:00.123456Z", "consecutive_failures": 7,
        "next_probe_at": "2026-11-20T12:00:04.123456Z",
    });
    vendor
}

fn purchase() -> Value {
    json!({
        "purchase_id": "0198c1f2-a3b4-7c5d-8e9f-0a1b2c3d4e5f", "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "item": 0, "vendor": "acme-cards", "product_id": "game-us",
        "denomination": 25.00, "currency": "USD", "quantity": 2, "state": "refused", "last_response": "REFUSED",
        "last_message": "invalid vendor response: vouchers[0].expiry does not follow the vendor protocol",
        "sold": 0, "imported": 0, "quarantined": [], "requested_at": "2026-11-20T12:00:00.123456Z",
        "last_response_at": "2026-11-20T12:00:01.123456Z", "next_attempt_at": "2026-11-20T12:00:01.373456Z",
    })
}

fn vendor() -> Value {
    json!({
        "vendor_id": "acme-cards", "adapter": "http", "url": "https://vendor.example/vouchsafe", "has_credentials": true,
        "concurrency": 8, "updated_at": "2026-11-20T12:00:00.123456Z",
    })
}
