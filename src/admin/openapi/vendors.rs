//! What is said of `/vendors`, and of what is bought from them.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_actors::domain::ids::OrderId;
use vouchsafe_actors::domain::schema::slug;

use super::{VENDORS, looks, writes_json};
use crate::admin::decision::Because;
use crate::admin::vendors::VendorRequest;
use crate::errors::Code;
use crate::openapi::{Answer, Operation, filter, text, word};
use crate::store::{PurchaseState, ShownPurchase, Vendor};

pub(super) fn operations() -> [Operation; 4] {
    [list(), put(), purchases(), end_purchase()]
}

fn list() -> Operation {
    looks("/vendors", "listVendors")
        .says(
            VENDORS,
            "List vendors",
            "All of them, by id, without their credentials.",
        )
        .paged()
        .answers(Answer::page_of::<Vendor>("Vendors.", vendor()))
}

fn put() -> Operation {
    let request = json!({
        "adapter": "http", "url": "https://vendor.example/vouchsafe", "credentials": "what-the-vendor-gave-us",
        "concurrency": 8,
    });
    writes_json(HttpMethod::Put, "/vendors/{vendor_id}", "putVendor")
        .says(
            VENDORS,
            "Make or replace a vendor",
            "The whole of it, but for the credentials: left out, those that are kept stay, unless `url` changes. For \
             admins.",
        )
        .path("vendor_id", "Which vendor.", slug("The id of a vendor", "acme-cards"))
        .takes::<VendorRequest>(request)
        .answers(Answer::of::<Vendor>(200, "It was there, and is replaced.", vendor()))
        .answers(Answer::of::<Vendor>(201, "It is new.", vendor()))
}

fn purchases() -> Operation {
    looks("/purchases", "listPurchases")
        .says(
            VENDORS,
            "List purchases",
            "What is bought from vendors for orders, newest first, with what the vendor said last. It never quotes a vendor.",
        )
        .query("vendor", "Only those from this vendor.", filter("acme-cards"))
        .query(
            "state",
            "Only those that stand here. What was refused goes on, too, and is asked about again.",
            word(PurchaseState::ALL.map(PurchaseState::as_str)),
        )
        .query("order_id", "Only those for this order.", OrderId::schema())
        .paged()
        .answers(Answer::page_of::<ShownPurchase>("Purchases.", purchase()))
}

fn end_purchase() -> Operation {
    let mut ended = purchase();
    ended["state"] = "ended".into();
    ended["answer"] = "ENDED".into();
    ended["last_word"] = "ended by an operator: the vendor has closed".into();
    ended["next_at"] = Value::Null;
    writes_json(HttpMethod::Post, "/purchases/{purchase_id}/end", "endPurchase")
        .says(
            VENDORS,
            "End a purchase",
            "Nothing more comes of it, whatever the vendor says from here on: for a purchase whose outcome the vendor itself \
             cannot tell. What its order still lacks is paid back. A second call answers as the first did.",
        )
        .path("purchase_id", "Which purchase.", text("0198c1f2-a3b4-7c5d-8e9f-0a1b2c3d4e5f"))
        .takes::<Because>(json!({ "reason": "the vendor has closed" }))
        .answers(Answer::of::<ShownPurchase>(200, "It has ended.", ended))
        .refuses(&[Code::PurchaseNotFound])
}

fn purchase() -> Value {
    json!({
        "purchase_id": "0198c1f2-a3b4-7c5d-8e9f-0a1b2c3d4e5f", "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "item": 0, "vendor": "acme-cards", "product_id": "game-us",
        "denomination": 25.00, "currency": "USD", "quantity": 2, "state": "refused", "answer": "REFUSED",
        "last_word": "the vendor's answer was refused: vouchers[0].expiry is missing or of the wrong type",
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
