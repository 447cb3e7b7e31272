//! What is said of `/reconciliation` and `/drifts`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_actors::domain::ids::DriftId;

use super::{RECONCILIATION, looks, writes, writes_json};
use crate::admin::reconciliation::drifts::{DriftBody, ResolveRequest};
use crate::admin::reconciliation::{DayBody, RunRequest};
use crate::errors::Code;
use crate::openapi::{Answer, Operation, date, filter, text, word};
use crate::reconciliation::Kind;
use crate::store::Resolution;

const CSV: &str = "reference,product_id,denomination,currency,sold_at,purchase_id\nA-1,game-us,25.00,USD,\
                   2026-11-20T12:00:00Z,0198c1f2-a3b4-7c5d-8e9f-0a1b2c3d4e5f\n";

pub(super) fn operations() -> [Operation; 5] {
    [get(), run(), upload(), list_drifts(), resolve()]
}

fn get() -> Operation {
    of_day(looks("/reconciliation/{date}", "getReconciliation"))
        .says(
            RECONCILIATION,
            "Get the reconciliation of a day",
            "What came of comparing the vendors' books of a day with what was bought, by vendor.",
        )
        .answers(Answer::of::<DayBody>(200, "The day.", day()))
        .refuses(&[Code::ReconciliationNotFound, Code::ValidationFailed])
}

fn run() -> Operation {
    let path = "/reconciliation/{date}/run";
    of_day(writes(HttpMethod::Post, path, "runReconciliation"))
        .says(
            RECONCILIATION,
            "Reconcile a day now",
            "It is done as soon as may be, and tried for a day if it fails; the earlier result stands until then. A day that \
             is not over is compared as far as it has come.",
        )
        .may_take::<RunRequest>(json!({ "vendor": "acme-cards" }))
        .answers(Answer::of::<DayBody>(202, "It is written down. The day as it is until then.", day()))
        .refuses(&[
            Code::MalformedRequest,
            Code::RequestTimeout,
            Code::PayloadTooLarge,
            Code::UnsupportedMediaType,
            Code::ValidationFailed,
        ])
}

fn upload() -> Operation {
    let path = "/reconciliation/{date}/records";
    of_day(writes(HttpMethod::Post, path, "uploadRecords"))
        .says(
            RECONCILIATION,
            "Reconcile a day with a file",
            "A vendor's books of a day, of any size, read as they come; a pause of more than 10 seconds ends it. They are \
             compared whole or not at all, in the place of the earlier ones.",
        )
        .required_query("vendor", "Whose books.", text("acme-cards"))
        .takes_text(vec![("text/csv", CSV)])
        .answers(Answer::of::<DayBody>(200, "The day since.", day()))
        .refuses(&[
            Code::MalformedRequest,
            Code::ReconciliationInProgress,
            Code::RequestTimeout,
            Code::UnsupportedMediaType,
            Code::ValidationFailed,
        ])
}

fn list_drifts() -> Operation {
    looks("/drifts", "listDrifts")
        .says(
            RECONCILIATION,
            "List drifts",
            "Where the vendors' books and ours differ, newest first.",
        )
        .query("date", "Only those of this day, in UTC.", date("2026-11-20"))
        .query("vendor", "Only those with this vendor.", filter("acme-cards"))
        .query(
            "kind",
            "Only those of this kind.",
            word(Kind::ALL.map(Kind::as_str)),
        )
        .query(
            "resolution",
            "Only those of which this was said.",
            word(Resolution::ALL.map(Resolution::as_str)),
        )
        .paged()
        .answers(Answer::page_of::<DriftBody>("Drifts.", drift()))
}

fn resolve() -> Operation {
    let mut resolved = drift();
    resolved["resolution"] = "resolved".into();
    resolved["reason"] = "the vendor has corrected its books".into();
    resolved["resolved_at"] = "2026-11-21T09:00:00.123456Z".into();
    writes_json(HttpMethod::Post, "/drifts/{drift_id}/resolve", "resolveDrift")
        .says(
            RECONCILIATION,
            "Say something of a drift",
            "That it is settled, or that the vendor was asked. It may be said otherwise later; the trail has all of it.",
        )
        .path("drift_id", "Which drift.", DriftId::schema())
        .takes::<ResolveRequest>(json!({ "resolution": "resolved", "reason": "the vendor has corrected its books" }))
        .answers(Answer::of::<DriftBody>(200, "The drift since.", resolved))
        .refuses(&[Code::DriftNotFound])
}

fn of_day(operation: Operation) -> Operation {
    operation.path("date", "Which day, in UTC.", date("2026-11-20"))
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
    let said = |denomination: u32| {
        json!({
            "purchase_id": "0198c1f2-a3b4-7c5d-8e9f-0a1b2c3d4e5f", "product_id": "game-us", "denomination": denomination,
            "currency": "USD",
        })
    };
    json!({
        "drift_id": "drf_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "date": "2026-11-20", "vendor": "acme-cards", "kind": "DIFFERS",
        "differences": ["denomination"], "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "our_allocation": "vch_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "vendor_record": "A-1", "ours": said(25), "theirs": said(50), "detected_at": "2026-11-21T02:00:03.123456Z",
        "resolution": "pending", "reason": null, "resolved_at": null,
    })
}
