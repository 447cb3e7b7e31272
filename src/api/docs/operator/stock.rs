//! OpenAPI operations of `/stock`.

use serde_json::json;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::stock::import::{ImportQuery, ImportReport};
use vouchsafe_wire::operator::stock::level::{LevelBody, LevelFilter};
use vouchsafe_wire::operator::stock::void::{VoidReport, VoidRequest};

use super::{STOCK, json_write_operation, read_operation};
use crate::api::docs::openapi::Operation;

const CSV: &str = "code,pin,serial,url,expiry\nABCD-1234,0000,,,2027-12-31\n";

const NDJSON: &str = "{\"code\":\"ABCD-1234\",\"pin\":\"0000\",\"expiry\":\"2027-12-31\"}\n";

pub(crate) fn levels(operation: Operation) -> Operation {
    let level = json!({
        "product_id": "amzn-us", "denomination": 25, "currency": "USD", "loaded": 100, "free": 80, "sold": 15, "void": 3,
        "expired": 2, "next_expiry": "2027-12-31",
    });
    read_operation(operation, "listStock")
        .describe(
            STOCK,
            "List stock levels",
            "Numbers of vouchers by SKU: available, sold, void and expired.",
        )
        .list::<LevelFilter, LevelBody>("Page of stock levels.", level)
}

pub(crate) fn import(operation: Operation) -> Operation {
    let report = json!({
        "vendor": "acme-cards", "batch": "delivery-4711", "imported": 99, "duplicates": 0, "rejected_count": 1, "rejected": [{ "line": 3, "reason": "expired on 2026-01-31" }],
    });
    read_operation(operation, "importStock")
        .describe(
            STOCK,
            "Import vouchers",
            "Imports a file of any size and commits every 10,000 lines; a pause of more than 10 seconds aborts the import. A \
             voucher is imported once, so an interrupted import can be repeated. The same code of a brand with another PIN is \
             rejected, unless the product's `code_identity` is `code_and_pin`.",
        )
        .query::<ImportQuery>()
        .text_body(vec![("text/csv", CSV), ("application/x-ndjson", NDJSON)])
        .ok::<ImportReport>("Result.", report)
        .errors(&[
            Code::MalformedRequest,
            Code::ProductNotFound,
            Code::RequestTimeout,
            Code::UnsupportedMediaType,
            Code::ValidationFailed,
            Code::DenominationNotAllowed,
        ])
}

pub(crate) fn void(operation: Operation) -> Operation {
    let request =
        json!({ "product_id": "amzn-us", "codes": [{ "code": "ABCD-1234" }], "reason": "reported stolen" });
    let report = json!({ "voided": 0, "rejected": [{ "index": 0, "reason": "SOLD" }] });
    json_write_operation(operation, "voidStock")
        .describe(
            STOCK,
            "Void vouchers",
            "Takes all available vouchers of a SKU, or named codes, out of sale. Sold vouchers stay sold. Can be repeated.",
        )
        .json_body::<VoidRequest>(request)
        .ok::<VoidReport>("Result.", report)
        .errors(&[Code::ProductNotFound, Code::DenominationNotAllowed])
}
