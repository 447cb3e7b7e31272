//! OpenAPI operations of `/stock`.

use serde_json::{Value, json};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::stock::expiries::StockExpiry;
use vouchsafe_wire::operator::stock::import::{ImportQuery, ImportReport};
use vouchsafe_wire::operator::stock::level::{LevelBody, LevelFilter};
use vouchsafe_wire::operator::stock::quarantine::{
    ComparisonReport, QuarantineReport, QuarantineRequest, ReleaseReport, ReleaseRequest, SoldRequest,
};
use vouchsafe_wire::operator::stock::void::{VoidReport, VoidRequest};

use super::{STOCK, json_write_operation, read_operation};
use crate::openapi::Operation;

const CSV: &str = "code,pin,serial,url,expiry\nABCD-1234,0000,,,2027-12-31\n";

const NDJSON: &str = "{\"code\":\"ABCD-1234\",\"pin\":\"0000\",\"expiry\":\"2027-12-31\"}\n";

/// Example of a stock level.
pub(super) fn level() -> Value {
    json!({
        "product_id": "amzn-us", "denomination": 25, "currency": "USD", "loaded": 100, "free": 80, "quarantined": 0, "sold": 15, "void": 3,
        "expired": 2, "next_expiry": "2027-12-31", "sold_7d": 14, "days_left": 40.0,
    })
}

pub fn levels(operation: Operation) -> Operation {
    read_operation(operation, "listStock")
        .describe(
            STOCK,
            "List stock levels",
            "Numbers of vouchers by SKU: available, sold, void and expired, and how long the available ones last at the rate of the last \
             seven days.",
        )
        .list::<LevelFilter, LevelBody>("Page of stock levels.", level())
}

pub fn expiries(operation: Operation) -> Operation {
    read_operation(operation, "listStockExpiries")
        .describe(
            STOCK,
            "List stock by expiry",
            "Available vouchers by the month in which they expire, of one product or of all; those that never expire come last.",
        )
        .list::<LevelFilter, StockExpiry>(
            "Page of months.",
            json!({ "month": "2027-12", "vouchers": 80, "share": 0.8 }),
        )
}

pub fn import(operation: Operation) -> Operation {
    let report = json!({
        "vendor": "acme-cards", "batch": "delivery-4711", "imported": 99, "duplicates": 0, "rejected_count": 1, "rejected": [{ "line": 3, "reason": "expired on 2026-01-31" }],
        "dry_run": false, "notices": ["the fields are separated by semicolons, not by commas"], "first_rows": [],
    });
    read_operation(operation, "importStock")
        .describe(
            STOCK,
            "Import vouchers",
            "Imports a file of any size and commits every 10,000 lines; a pause of more than 10 seconds aborts the import. A \
             voucher is imported once, so an interrupted import can be repeated. The same code of a brand with another PIN is \
             rejected, unless the product's `code_identity` is `code_and_pin`. CSV may be UTF-8 or UTF-16, with commas, semicolons or tabs, \
             with or without a header; what is unusual is in `notices`. A record that does not parse is rejected whole.",
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

pub fn void(operation: Operation) -> Operation {
    let request =
        json!({ "product_id": "amzn-us", "codes": [{ "code": "ABCD-1234" }], "reason": "reported stolen" });
    let report = json!({ "voided": 0, "rejected": [{ "index": 0, "reason": "SOLD" }] });
    json_write_operation(operation, "voidStock")
        .describe(
            STOCK,
            "Void vouchers",
            "Takes all available vouchers of a SKU, or named codes, out of sale. Sold vouchers stay sold. A code names the voucher whatever its PIN, unless the \
             product's `code_identity` is `code_and_pin`. Can be repeated.",
        )
        .json_body::<VoidRequest>(request)
        .ok::<VoidReport>("Result.", report)
        .errors(&[Code::ProductNotFound, Code::DenominationNotAllowed])
}

pub fn quarantine(operation: Operation) -> Operation {
    json_write_operation(operation, "quarantineStock")
        .describe(
            STOCK,
            "Quarantine all available stock",
            "Nothing of it is sold until it is released; stock that is imported later sells at once. Call it after a restore that \
             the service cannot detect, before orders are placed.",
        )
        .json_body::<QuarantineRequest>(json!({ "reason": "restored the disk snapshot of 02:00" }))
        .ok::<QuarantineReport>("The quarantine.", json!({ "stock_quarantined": true }))
}

pub fn withdraw_sold(operation: Operation) -> Operation {
    let request = json!({
        "vouchers": [{ "code_id": 4711, "voucher_id": "vch_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f" }, { "product_id": "amzn-us", "code": "ABCD-1234" }],
        "reason": "sold after the backup of 02:00",
    });
    let report =
        json!({ "known": 0, "withdrawn": 2, "kept": 0, "absent": 0, "absent_codes": [], "unidentified": [] });
    json_write_operation(operation, "withdrawSoldStock")
        .describe(
            STOCK,
            "Take vouchers out of sale that were sold since the backup",
            "Repeat it with all vouchers that were sold, in parts of 1,000. It can be repeated. Sort those that only `voucher_id` names by \
             it: a request searches what was sold between the first and the last of them.",
        )
        .json_body::<SoldRequest>(request)
        .ok::<ComparisonReport>("Result.", report)
        .errors(&[Code::ProductNotFound])
}

pub fn release(operation: Operation) -> Operation {
    let request = json!({
        "after": "RESTORE", "except": [{ "product_id": "amzn-us", "denomination": 25 }], "reason": "compared with the export of 08:00",
    });
    let report =
        json!({ "released": 120_000, "has_more": false, "quarantine": 1, "stock_quarantined": false });
    json_write_operation(operation, "releaseStock")
        .describe(
            STOCK,
            "Release quarantined stock",
            "After a restore, name the vouchers first that were sold since the backup. A request releases up to 1,000 chunks of vouchers: \
             repeat it with `quarantine` of the response while `has_more` is true. It can be repeated after any failure.",
        )
        .json_body::<ReleaseRequest>(request)
        .ok::<ReleaseReport>("Progress.", report)
        .errors(&[Code::ProductNotFound, Code::DenominationNotAllowed])
}
