//! What is said of `/reconciliation`, which is planned: where the preview is on, and nowhere else.

use serde_json::json;
use utoipa::openapi::HttpMethod;

use super::{ORDERS, identified};
use crate::errors::Code;
use crate::http::reconciliation::DayBody;
use crate::openapi::{Answer, Operation, date};

pub(super) fn get() -> Operation {
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
    identified(HttpMethod::Get, "/reconciliation/{date}", "getReconciliation")
        .says(
            ORDERS,
            "Get the reconciliation of a day (planned)",
            "A preview: **planned, and subject to change**. What came of comparing the vouchers that were bought for your \
             orders with their vendors' books.",
        )
        .path("date", "Which day, in UTC.", date("2026-11-20"))
        .answers(Answer::of::<DayBody>(200, "The day.", example))
        .refuses(&[Code::ReconciliationNotFound, Code::ValidationFailed])
}
