//! OpenAPI operations of `/vendors` and `/purchases`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::purchase::view::{PurchaseState, PurchaseView};
use vouchsafe_domain::schema::slug;
use vouchsafe_domain::vendor::Vendor;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::decision::ReasonRequest;
use vouchsafe_wire::operator::vendors::VendorRequest;

use super::{VENDORS, json_write_operation, read_operation};
use crate::api::docs::openapi::{Operation, OperationResponse, enum_text, filter, text};

pub(super) fn operations() -> [Operation; 4] {
    [list(), put(), purchases(), end_purchase()]
}

fn list() -> Operation {
    read_operation("/vendors", "listVendors")
        .describe(VENDORS, "List vendors", "Sorted by ID, without credentials.")
        .paginated()
        .response(OperationResponse::page::<Vendor>("Page of vendors.", vendor()))
}

fn put() -> Operation {
    let request = json!({
        "adapter": "http", "url": "https://vendor.example/vouchsafe", "credentials": "what-the-vendor-gave-us",
        "concurrency": 8,
    });
    json_write_operation(HttpMethod::Put, "/vendors/{vendor_id}", "putVendor")
        .describe(
            VENDORS,
            "Create or replace a vendor",
            "Replaces all fields. Omitted credentials stay unchanged, unless `url` changes. Requires the role admin.",
        )
        .path_parameter("vendor_id", "Vendor ID.", slug("Vendor ID", "acme-cards"))
        .json_body::<VendorRequest>(request)
        .response(OperationResponse::json::<Vendor>(200, "Replaced.", vendor()))
        .response(OperationResponse::json::<Vendor>(201, "Created.", vendor()))
}

fn purchases() -> Operation {
    read_operation("/purchases", "listPurchases")
        .describe(
            VENDORS,
            "List purchases",
            "Purchases from vendors for orders, newest first, with the last vendor response. Never quotes a vendor.",
        )
        .query_parameter("vendor", "Filter by vendor.", filter("acme-cards"))
        .query_parameter(
            "state",
            "Filter by state. Purchases in `refused` are retried too.",
            enum_text(PurchaseState::ALL.map(PurchaseState::as_str)),
        )
        .query_parameter("order_id", "Filter by order.", OrderId::schema())
        .paginated()
        .response(OperationResponse::page::<PurchaseView>("Page of purchases.", purchase()))
}

fn end_purchase() -> Operation {
    let mut ended = purchase();
    ended["state"] = "ended".into();
    ended["answer"] = "ENDED".into();
    ended["last_word"] = "ended by an operator: the vendor has closed".into();
    ended["next_at"] = Value::Null;
    json_write_operation(HttpMethod::Post, "/purchases/{purchase_id}/end", "endPurchase")
        .describe(
            VENDORS,
            "End a purchase",
            "Ends a purchase whose outcome the vendor cannot tell. Later responses of the vendor are ignored, and the missing \
             vouchers of the order are refunded. A repeated call returns the same result.",
        )
        .path_parameter("purchase_id", "Purchase ID.", text("0198c1f2-a3b4-7c5d-8e9f-0a1b2c3d4e5f"))
        .json_body::<ReasonRequest>(json!({ "reason": "the vendor has closed" }))
        .response(OperationResponse::json::<PurchaseView>(200, "The ended purchase.", ended))
        .errors(&[Code::PurchaseNotFound])
}

fn purchase() -> Value {
    json!({
        "purchase_id": "0198c1f2-a3b4-7c5d-8e9f-0a1b2c3d4e5f", "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "item": 0, "vendor": "acme-cards", "product_id": "game-us",
        "denomination": 25.00, "currency": "USD", "quantity": 2, "state": "refused", "answer": "REFUSED",
        "last_word": "invalid vendor response: vouchers[0].expiry does not follow the vendor protocol",
        "sold": 0, "kept": 0, "quarantined": [], "requested_at": "2026-11-20T12:00:00.123456Z",
        "answered_at": "2026-11-20T12:00:01.123456Z", "next_at": "2026-11-20T12:00:01.373456Z",
    })
}

fn vendor() -> Value {
    json!({
        "vendor_id": "acme-cards", "adapter": "http", "url": "https://vendor.example/vouchsafe", "has_credentials": true,
        "concurrency": 8, "updated_at": "2026-11-20T12:00:00.123456Z",
    })
}
