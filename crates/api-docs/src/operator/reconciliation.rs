//! OpenAPI operations of `/reconciliation` and `/drifts`.

use serde_json::{Value, json};
use vouchsafe_wire::operator::reconciliation;

use super::describe;
use crate::openapi::Operation;

const CSV: &str = "reference,product_id,denomination,currency,sold_at,purchase_id\nA-1,game-us,25.00,USD,\
                   2026-11-20T12:00:00Z,0198c1f2-a3b4-7c5d-8e9f-0a1b2c3d4e5f\n";

pub(super) fn reconciliation() -> [Operation; reconciliation::OPERATIONS.len()] {
    [
        describe(reconciliation::LIST_RECONCILIATIONS, "The days that were compared or counted, newest \
            first, with the counts of all vendors.")
            .list("Page of days.", json!({
                "date": "2026-11-20", "vendors": 2, "compared": 2, "failed": 0, "matched": 1200, "drifted": 1, "unmatched": 0,
            })),
        describe(reconciliation::GET_RECONCILIATION, "Vouchers of the orders settled on the day, by vendor \
            and batch, and the result of comparing the vendor records of the day with purchases, by \
            vendor.")
            .ok("The result.", day()),
        describe(reconciliation::RUN_RECONCILIATION, "Queues the comparison with each vendor, and the \
            count of allocations. If it fails, it is retried for a day; the previous result remains until \
            it succeeds. A day that is not over is compared up to now.")
            .optional_json_body(json!({ "vendor": "acme-cards" }))
            .accepted("Queued. The previous result.", day()),
        describe(reconciliation::UPLOAD_RECORDS, "Compares a file of any size with the purchases of the \
            day, in place of earlier records. A file takes effect completely or not at all; a pause of \
            more than 10 seconds aborts the upload.")
            .query()
            .text_body(vec![("text/csv", CSV)])
            .ok("The new result.", day()),
        describe(reconciliation::LIST_DRIFTS, "Differences between vendor records and purchases, newest first.")
            .list("Page of drifts.", drift()),
        describe(reconciliation::RESOLVE_DRIFT, "Marks a drift as resolved, or as escalated to the vendor. \
            Can be changed later; the audit trail has each change.")
            .json_body(json!({ "resolution": "resolved", "reason": "the vendor has corrected its records" }))
            .ok("The drift after the change.", resolved_drift()),
    ]
}

fn resolved_drift() -> Value {
    let mut resolved = drift();
    resolved["resolution"] = "resolved".into();
    resolved["reason"] = "the vendor has corrected its records".into();
    resolved["resolved_at"] = "2026-11-21T09:00:00.123456Z".into();
    resolved
}

fn day() -> Value {
    let summary =
        json!({ "orders_total": 12, "vouchers_allocated": 40, "matched": 29, "drifted": 1, "unmatched": 0 });
    json!({
        "date": "2026-11-20",
        "summary": summary.clone(),
        "vendors": [{
            "vendor": "acme-cards", "summary": summary, "recorded": 30, "source": "http",
            "started_at": "2026-11-21T02:00:00.123456Z", "generated_at": "2026-11-21T02:00:03.123456Z", "failed_attempts": 0,
            "last_error": null, "next_attempt_at": null,
        }],
        "allocations": [
            {
                "vendor": "acme-cards", "source": "purchase", "batch": null, "orders": 9, "vouchers": 30,
                "records": "compared", "matched": 29, "drifted": 1, "unmatched": 0,
            },
            {
                "vendor": "by-hand", "source": "import", "batch": "delivery-4711", "orders": 4, "vouchers": 10,
                "records": "none", "matched": null, "drifted": null, "unmatched": null,
            },
        ],
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
