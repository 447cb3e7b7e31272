//! OpenAPI operation of `/reconciliation`, documented only while the preview is enabled.

use serde_json::json;
use vouchsafe_wire::partner::reconciliation;

use super::describe;
use crate::openapi::Operation;

pub(super) fn reconciliation() -> [Operation; reconciliation::OPERATIONS.len()] {
    [
        describe(reconciliation::GET_RECONCILIATION, "Preview: **planned and subject to change**. Returns \
            the result of comparing the vouchers bought for your orders with the vendors' records.")
            .ok("The reconciliation of the day.", json!({
                "date": "2026-11-20",
                "summary": { "orders_total": 12, "vouchers_allocated": 40, "matched": 39, "drifted": 1, "unmatched": 0 },
                "drifts": [{
                    "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "vendor": "acme-cards", "product_id": "game-us",
                    "our_allocation": "vch_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "vendor_record": "A-1",
                    "detected_at": "2026-11-21T02:00:03.123456Z", "resolution": "pending",
                }],
                "generated_at": "2026-11-21T02:00:03.123456Z",
            })),
    ]
}
