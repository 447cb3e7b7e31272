//! OpenAPI operations of `/vendors` and `/purchases`.

use serde_json::{Value, json};
use vouchsafe_domain::purchase::view::{PurchaseFilter, PurchaseView};
use vouchsafe_domain::vendor::Vendor;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::filter::NoFilter;
use vouchsafe_wire::operator::decision::ReasonRequest;
use vouchsafe_wire::operator::vendors::{VendorBody, VendorRequest};

use super::{VENDORS, json_write_operation, read_operation};
use crate::openapi::Operation;

pub fn list(operation: Operation) -> Operation {
    read_operation(operation, "listVendors")
        .describe(
            VENDORS,
            "List vendors",
            "Sorted by ID, without credentials. Each node has its own circuit breakers: `circuit` is the state on the node that responded.",
        )
        .list::<NoFilter, VendorBody>("Page of vendors.", vendor_with_circuit())
}

pub fn get(operation: Operation) -> Operation {
    read_operation(operation, "getVendor")
        .describe(
            VENDORS,
            "Get a vendor",
            "Without its credentials. `circuit` is the state on the node that responded.",
        )
        .ok::<VendorBody>("The vendor.", vendor_with_circuit())
        .errors(&[Code::VendorNotFound])
}

pub fn put(operation: Operation) -> Operation {
    let request = json!({
        "adapter": "http", "url": "https://vendor.example/vouchsafe", "credentials": "what-the-vendor-gave-us",
        "concurrency": 8,
    });
    json_write_operation(operation, "putVendor")
        .describe(
            VENDORS,
            "Create or replace a vendor",
            "Replaces all fields. Omitted credentials stay unchanged, unless `url` changes.",
        )
        .json_body::<VendorRequest>(request)
        .ok::<Vendor>("Replaced.", vendor())
        .created::<Vendor>("Created.", vendor())
}

pub fn purchases(operation: Operation) -> Operation {
    read_operation(operation, "listPurchases")
        .describe(
            VENDORS,
            "List purchases",
            "Purchases from vendors for orders, newest first, with the last vendor response. Never quotes a vendor.",
        )
        .list::<PurchaseFilter, PurchaseView>("Page of purchases.", purchase())
}

pub fn get_purchase(operation: Operation) -> Operation {
    read_operation(operation, "getPurchase")
        .describe(
            VENDORS,
            "Get a purchase",
            "With the last vendor response. Never quotes a vendor.",
        )
        .ok::<PurchaseView>("The purchase.", purchase())
}

pub fn end_purchase(operation: Operation) -> Operation {
    let mut ended = purchase();
    ended["state"] = "ended".into();
    ended["last_response"] = "ENDED".into();
    ended["last_message"] = "ended by an operator: the vendor has closed".into();
    ended["next_attempt_at"] = Value::Null;
    json_write_operation(operation, "endPurchase")
        .describe(
            VENDORS,
            "End a purchase",
            "Ends a purchase whose outcome the vendor cannot tell. Later responses of the vendor are ignored, and the missing \
             vouchers of the order are refunded. A repeated call returns the same result.",
        )
        .json_body::<ReasonRequest>(json!({ "reason": "the vendor has closed" }))
        .ok::<PurchaseView>("The ended purchase.", ended)
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
