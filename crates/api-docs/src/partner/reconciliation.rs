//! OpenAPI operation of `/reconciliation`, documented only while the preview is enabled.

use serde_json::json;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::reconciliation::ReconciledDayBody;

use super::{ORDERS, unsigned_operation};
use crate::openapi::{Operation, date};

pub fn get(operation: Operation) -> Operation {
    let example = json!({
        "date": "2026-11-20",
        "summary": { "orders_total": 12, "vouchers_allocated": 40, "matched": 39, "drifted": 1, "unmatched": 0 },
        "drifts": [{
            "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "vendor": "acme-cards", "product_id": "game-us",
            "our_allocation": "vch_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "vendor_record": "A-1",
            "detected_at": "2026-11-21T02:00:03.123456Z", "resolution": "pending",
        }],
        "generated_at": "2026-11-21T02:00:03.123456Z",
    });
    unsigned_operation(operation, "getReconciliation")
        .describe(
            ORDERS,
            "Get the reconciliation of a day (planned)",
            "Preview: **planned and subject to change**. Returns the result of comparing the vouchers bought for your orders \
             with the vendors' records.",
        )
        .path_parameter("date", "Day (UTC).", date("2026-11-20"))
        .ok::<ReconciledDayBody>("The reconciliation of the day.", example)
        .errors(&[Code::ReconciliationNotFound, Code::ValidationFailed])
}
