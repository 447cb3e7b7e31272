//! What is said of `/stock`.

use serde_json::json;
use utoipa::openapi::HttpMethod;

use super::{STOCK, looks, writes, writes_json};
use crate::admin::stock::{LevelBody, Report, VoidReport, VoidRequest};
use crate::errors::Code;
use crate::openapi::{Answer, Operation, filter, text};

const CSV: &str = "code,pin,serial,url,expiry\nABCD-1234,0000,,,2027-12-31\n";

const NDJSON: &str = "{\"code\":\"ABCD-1234\",\"pin\":\"0000\",\"expiry\":\"2027-12-31\"}\n";

pub(super) fn operations() -> [Operation; 3] {
    [levels(), import(), void()]
}

fn levels() -> Operation {
    let level = json!({
        "product_id": "amzn-us", "denomination": 25, "currency": "USD", "loaded": 100, "free": 80, "sold": 15, "void": 3,
        "expired": 2, "next_expiry": "2027-12-31",
    });
    looks("/stock", "listStock")
        .says(
            STOCK,
            "List stock levels",
            "How many vouchers of each SKU there are, and what became of the others.",
        )
        .query("product_id", "Only those of this product.", filter("amzn-us"))
        .paged()
        .answers(Answer::page_of::<LevelBody>("Levels.", level))
}

fn import() -> Operation {
    let report = json!({
        "imported": 99, "duplicates": 0, "rejected_count": 1, "rejected": [{ "line": 3, "reason": "expired on 2026-01-31" }],
    });
    writes(HttpMethod::Post, "/stock", "importStock")
        .says(
            STOCK,
            "Import vouchers",
            "A file of any size, read as it comes, committed by 10,000 lines; a pause of more than 10 seconds ends it. A \
             voucher is imported once, however often its file is sent: repeat an import that broke off.",
        )
        .required_query("product_id", "Of which product.", text("amzn-us"))
        .required_query("denomination", "At which of its face values.", text("25.00"))
        .takes_text(vec![("text/csv", CSV), ("application/x-ndjson", NDJSON)])
        .answers(Answer::of::<Report>(200, "What became of it.", report))
        .refuses(&[
            Code::MalformedRequest,
            Code::ProductNotFound,
            Code::RequestTimeout,
            Code::UnsupportedMediaType,
            Code::ValidationFailed,
            Code::DenominationNotAllowed,
        ])
}

fn void() -> Operation {
    let request =
        json!({ "product_id": "amzn-us", "codes": [{ "code": "ABCD-1234" }], "reason": "reported stolen" });
    let report = json!({ "voided": 0, "refused": [{ "index": 0, "reason": "SOLD" }] });
    writes_json(HttpMethod::Post, "/stock/void", "voidStock")
        .says(
            STOCK,
            "Take vouchers out of sale",
            "Either everything of a SKU that is free, or codes that are named. What is sold stays sold. May be repeated.",
        )
        .takes::<VoidRequest>(request)
        .answers(Answer::of::<VoidReport>(200, "What became of it.", report))
        .refuses(&[Code::ProductNotFound, Code::DenominationNotAllowed])
}
