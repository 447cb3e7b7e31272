//! OpenAPI operations of `/reconciliation` and `/drifts`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_domain::ids::DriftId;
use vouchsafe_domain::reconciliation::DriftKind;
use vouchsafe_domain::reconciliation::drift::DriftResolution;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::reconciliation::drifts::{DriftBody, ResolveRequest};
use vouchsafe_wire::operator::reconciliation::{DayBody, RunRequest};

use super::{RECONCILIATION, json_write_operation, read_operation, write_operation};
use crate::api::docs::openapi::{Operation, OperationResponse, date, enum_text, filter, text};

const CSV: &str = "reference,product_id,denomination,currency,sold_at,purchase_id\nA-1,game-us,25.00,USD,\
                   2026-11-20T12:00:00Z,0198c1f2-a3b4-7c5d-8e9f-0a1b2c3d4e5f\n";

pub(super) fn operations() -> [Operation; 5] {
    [get(), run(), upload(), list_drifts(), resolve()]
}

fn get() -> Operation {
    day_operation(read_operation("/reconciliation/{date}", "getReconciliation"))
        .describe(
            RECONCILIATION,
            "Get the reconciliation of a day",
            "Result of comparing the vendor records of a day with purchases, by vendor.",
        )
        .response(OperationResponse::json::<DayBody>(200, "The result.", day()))
        .errors(&[Code::ReconciliationNotFound, Code::ValidationFailed])
}

fn run() -> Operation {
    let path = "/reconciliation/{date}/run";
    day_operation(write_operation(HttpMethod::Post, path, "runReconciliation"))
        .describe(
            RECONCILIATION,
            "Run the reconciliation of a day",
            "Queues the comparison. If it fails, it is retried for a day; the previous result remains until it succeeds. A \
             day that is not over is compared up to now.",
        )
        .optional_json_body::<RunRequest>(json!({ "vendor": "acme-cards" }))
        .response(OperationResponse::json::<DayBody>(202, "Queued. The previous result.", day()))
        .errors(&[
            Code::MalformedRequest,
            Code::RequestTimeout,
            Code::PayloadTooLarge,
            Code::UnsupportedMediaType,
            Code::ValidationFailed,
        ])
}

fn upload() -> Operation {
    let path = "/reconciliation/{date}/records";
    day_operation(write_operation(HttpMethod::Post, path, "uploadRecords"))
        .describe(
            RECONCILIATION,
            "Upload the vendor records of a day",
            "Compares a file of any size with the purchases of the day, in place of earlier records. A file takes effect \
             completely or not at all; a pause of more than 10 seconds aborts the upload.",
        )
        .required_query_parameter("vendor", "Vendor ID.", text("acme-cards"))
        .text_body(vec![("text/csv", CSV)])
        .response(OperationResponse::json::<DayBody>(200, "The new result.", day()))
        .errors(&[
            Code::MalformedRequest,
            Code::ReconciliationInProgress,
            Code::RequestTimeout,
            Code::UnsupportedMediaType,
            Code::ValidationFailed,
        ])
}

fn list_drifts() -> Operation {
    read_operation("/drifts", "listDrifts")
        .describe(
            RECONCILIATION,
            "List drifts",
            "Differences between vendor records and purchases, newest first.",
        )
        .query_parameter("date", "Filter by day, in UTC.", date("2026-11-20"))
        .query_parameter("vendor", "Filter by vendor.", filter("acme-cards"))
        .query_parameter(
            "kind",
            "Filter by kind.",
            enum_text(DriftKind::ALL.map(DriftKind::as_str)),
        )
        .query_parameter(
            "resolution",
            "Filter by resolution.",
            enum_text(DriftResolution::ALL.map(DriftResolution::as_str)),
        )
        .paginated()
        .response(OperationResponse::page::<DriftBody>("Page of drifts.", drift()))
}

fn resolve() -> Operation {
    let mut resolved = drift();
    resolved["resolution"] = "resolved".into();
    resolved["reason"] = "the vendor has corrected its records".into();
    resolved["resolved_at"] = "2026-11-21T09:00:00.123456Z".into();
    json_write_operation(HttpMethod::Post, "/drifts/{drift_id}/resolve", "resolveDrift")
        .describe(
            RECONCILIATION,
            "Resolve a drift",
            "Marks a drift as resolved, or as escalated to the vendor. Can be changed later; the audit trail has each change.",
        )
        .path_parameter("drift_id", "Drift ID.", DriftId::schema())
        .json_body::<ResolveRequest>(json!({ "resolution": "resolved", "reason": "the vendor has corrected its records" }))
        .response(OperationResponse::json::<DriftBody>(200, "The drift after the change.", resolved))
        .errors(&[Code::DriftNotFound])
}

fn day_operation(operation: Operation) -> Operation {
    operation.path_parameter("date", "Day in UTC.", date("2026-11-20"))
}

fn day() -> Value {
    let summary =
        json!({ "orders_total": 12, "vouchers_allocated": 40, "matched": 39, "drifted": 1, "unmatched": 0 });
    json!({
        "date": "2026-11-20",
        "summary": summary.clone(),
        "vendors": [{
            "vendor": "acme-cards", "summary": summary, "recorded": 40, "source": "http",
            "begun_at": "2026-11-21T02:00:00.123456Z", "generated_at": "2026-11-21T02:00:03.123456Z", "failed_attempts": 0,
            "last_word": null, "next_at": null,
        }],
    })
}

fn drift() -> Value {
    let side = |denomination: u32| {
        json!({
            "purchase_id": "0198c1f2-a3b4-7c5d-8e9f-0a1b2c3d4e5f", "product_id": "game-us", "denomination": denomination,
            "currency": "USD",
        })
    };
    json!({
        "drift_id": "drf_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "date": "2026-11-20", "vendor": "acme-cards", "kind": "DIFFERS",
        "differences": ["denomination"], "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "our_allocation": "vch_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "vendor_record": "A-1", "ours": side(25), "theirs": side(50), "detected_at": "2026-11-21T02:00:03.123456Z",
        "resolution": "pending", "reason": null, "resolved_at": null,
    })
}
