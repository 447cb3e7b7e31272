//! OpenAPI operations of `/stock`.

use serde_json::{Value, json};
use vouchsafe_wire::operator::stock;

use super::describe;
use crate::openapi::Operation;

const CSV: &str = "code,pin,serial,url,expiry\nABCD-1234,0000,,,2027-12-31\n";

const NDJSON: &str = "{\"code\":\"ABCD-1234\",\"pin\":\"0000\",\"expiry\":\"2027-12-31\"}\n";

pub(super) fn stock() -> [Operation; stock::OPERATIONS.len()] {
    [
        describe(stock::LIST_STOCK, "Numbers of vouchers by SKU: available, sold, void and expired, and \
            how long the available ones last at the rate of the last seven days.")
            .list("Page of stock levels.", level()),
        describe(stock::LIST_STOCK_EXPIRIES, "Available vouchers by the month in which they expire, of one \
            product or of all; those that never expire come last.")
            .list("Page of months.",
            json!({ "month": "2027-12", "vouchers": 80, "share": 0.8 })),
        describe(stock::IMPORT_STOCK, "Imports a file of any size and commits every 10,000 lines; a pause \
            of more than 10 seconds aborts the import. A voucher is imported once, so an interrupted \
            import can be repeated. The same code of a brand with another PIN is rejected, unless the \
            product's `code_identity` is `code_and_pin`. CSV may be UTF-8 or UTF-16, with commas, \
            semicolons or tabs, with or without a header; what is unusual is in `notices`. A record that \
            does not parse is rejected whole.")
            .query()
            .text_body(vec![("text/csv", CSV), ("application/x-ndjson", NDJSON)])
            .ok("Result.", json!({
                "vendor": "acme-cards", "batch": "delivery-4711", "imported": 99, "duplicates": 0, "rejected_count": 1, "rejected": [{ "line": 3, "reason": "expired on 2026-01-31" }],
                "dry_run": false, "notices": ["the fields are separated by semicolons, not by commas"], "first_rows": [],
            })),
        describe(stock::VOID_STOCK, "Takes all available vouchers of a SKU, or named codes, out of sale. \
            Sold vouchers stay sold. A code names the voucher whatever its PIN, unless the product's \
            `code_identity` is `code_and_pin`. Can be repeated.")
            .json_body(json!({ "product_id": "amzn-us", "codes": [{ "code": "ABCD-1234" }], "reason": "reported stolen" }))
            .ok("Result.", json!({ "voided": 0, "rejected": [{ "index": 0, "reason": "SOLD" }] })),
        describe(stock::QUARANTINE_STOCK, "Nothing of it is sold until it is released; stock that is \
            imported later sells at once. Call it after a restore that the service cannot detect, before \
            orders are placed.")
            .json_body(json!({ "reason": "restored the disk snapshot of 02:00" }))
            .ok("The quarantine.", json!({ "stock_quarantined": true })),
        describe(stock::WITHDRAW_SOLD_STOCK, "Repeat it with all vouchers that were sold, in parts of \
            1,000. It can be repeated. Sort those that only `voucher_id` names by it: a request searches \
            what was sold between the first and the last of them.")
            .json_body(json!({
                "vouchers": [{ "code_id": 4711, "voucher_id": "vch_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f" }, { "product_id": "amzn-us", "code": "ABCD-1234" }],
                "reason": "sold after the backup of 02:00",
            }))
            .ok("Result.", json!({ "known": 0, "withdrawn": 2, "kept": 0, "absent": 0, "absent_codes": [], "unidentified": [] })),
        describe(stock::RELEASE_STOCK, "After a restore, name the vouchers first that were sold since the \
            backup. A request releases up to 1,000 chunks of vouchers: repeat it with `quarantine` of the \
            response while `has_more` is true. It can be repeated after any failure.")
            .json_body(json!({
                "after": "RESTORE", "except": [{ "product_id": "amzn-us", "denomination": 25 }], "reason": "compared with the export of 08:00",
            }))
            .ok("Progress.", json!({ "released": 120_000, "has_more": false, "quarantine": 1, "stock_quarantined": false })),
    ]
}

/// Example of a stock level.
pub(super) fn level() -> Value {
    json!({
        "product_id": "amzn-us", "denomination": 25, "currency": "USD", "loaded": 100, "free": 80, "quarantined": 0, "sold": 15, "void": 3,
        "expired": 2, "next_expiry": "2027-12-31", "sold_7d": 14, "days_left": 40.0,
    })
}
