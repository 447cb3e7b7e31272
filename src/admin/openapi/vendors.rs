//! What is said of `/vendors`.

use serde_json::{Value, json};
use utoipa::openapi::HttpMethod;
use vouchsafe_actors::domain::schema::slug;

use super::{VENDORS, looks, writes_json};
use crate::admin::vendors::VendorRequest;
use crate::openapi::{Answer, Operation};
use crate::store::Vendor;

pub(super) fn operations() -> [Operation; 2] {
    [list(), put()]
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

fn vendor() -> Value {
    json!({
        "vendor_id": "acme-cards", "adapter": "http", "url": "https://vendor.example/vouchsafe", "has_credentials": true,
        "concurrency": 8, "updated_at": "2026-11-20T12:00:00.123456Z",
    })
}
