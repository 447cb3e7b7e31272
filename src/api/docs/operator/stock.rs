//! OpenAPI operations of `/stock`.

use serde_json::json;
use utoipa::openapi::HttpMethod;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::stock::import::ImportReport;
use vouchsafe_wire::operator::stock::level::LevelBody;
use vouchsafe_wire::operator::stock::void::{VoidReport, VoidRequest};

use super::{STOCK, json_write_operation, read_operation, write_operation};
use crate::api::docs::openapi::{Operation, OperationResponse, filter, text};

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
    read_operation("/stock", "listStock")
        .describe(
            STOCK,
            "List stock levels",
            "Numbers of vouchers by SKU: available, sold, void and expired.",
        )
        .query_parameter("product_id", "Filter by product.", filter("amzn-us"))
        .paginated()
        .response(OperationResponse::page::<LevelBody>(
            "Page of stock levels.",
            level,
        ))
}

fn import() -> Operation {
    let report = json!({
        "imported": 99, "duplicates": 0, "rejected_count": 1, "rejected": [{ "line": 3, "reason": "expired on 2026-01-31" }],
    });
    write_operation(HttpMethod::Post, "/stock", "importStock")
        .describe(
            STOCK,
            "Import vouchers",
            "Imports a file of any size and commits every 10,000 lines; a pause of more than 10 seconds aborts the import. A \
             voucher is imported once, so an interrupted import can be repeated.",
        )
        .required_query_parameter("product_id", "Product ID.", text("amzn-us"))
        .required_query_parameter("denomination", "Face value.", text("25.00"))
        .text_body(vec![("text/csv", CSV), ("application/x-ndjson", NDJSON)])
        .response(OperationResponse::json::<ImportReport>(200, "Result.", report))
        .errors(&[
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
    json_write_operation(HttpMethod::Post, "/stock/void", "voidStock")
        .describe(
            STOCK,
            "Void vouchers",
            "Takes all available vouchers of a SKU, or named codes, out of sale. Sold vouchers stay sold. Can be repeated.",
        )
        .json_body::<VoidRequest>(request)
        .response(OperationResponse::json::<VoidReport>(200, "Result.", report))
        .errors(&[Code::ProductNotFound, Code::DenominationNotAllowed])
}
