//! Reconciliation against a simulated vendor whose records lack vouchers, contain unsold ones or differ:
//! exactly these drifts are found, over HTTP and by file upload, and the vendor's records show that each
//! purchase was paid once.

mod allocations;
pub(crate) mod harness;
mod invalid_input;

use hyper::Method;
use serde_json::{Value, json};

use self::harness::{ReconciliationHarness, VENDOR, add_counts, records_csv};
use vouchsafe_test_harness::{Partner, ServiceDatabase, expect_error, expect_success};

const PRODUCTS: [&str; 8] = [
    "game-us",
    "sim-down",
    "sim-drop",
    "sim-part",
    "sim-pending",
    "sim-record-added",
    "sim-record-altered",
    "sim-record-dropped",
];

/// Products and quantities that the first partner orders.
const FIRST_ORDERS: [(&str, u32); 7] = [
    ("game-us", 3),
    ("sim-down", 1),
    ("sim-drop", 2),
    ("sim-part", 4),
    ("sim-pending", 4),
    ("sim-record-altered", 3),
    ("sim-record-dropped", 3),
];

/// Products and quantities that the second partner orders.
const SECOND_ORDERS: [(&str, u32); 2] = [("game-us", 2), ("sim-record-added", 2)];

/// Returns kind, product and differences of each drift, sorted by kind.
fn drift_summary(drifts: &[Value]) -> Vec<(String, String, Value)> {
    let product_of = |drift: &Value| {
        let side = if drift["ours"].is_null() { "theirs" } else { "ours" };
        drift[side]["product_id"].as_str().unwrap().to_owned()
    };
    let mut summaries: Vec<_> = drifts
        .iter()
        .map(|drift| {
            (
                drift["kind"].as_str().unwrap().to_owned(),
                product_of(drift),
                drift["differences"].clone(),
            )
        })
        .collect();
    summaries.sort_by(|one, other| one.0.cmp(&other.0));
    summaries
}

fn expected_drifts() -> Vec<(String, String, Value)> {
    let drift =
        |kind: &str, product: &str, differences: Value| (kind.to_owned(), product.to_owned(), differences);
    vec![
        drift("DIFFERS", "sim-record-altered", json!(["denomination"])),
        drift("MISSING", "sim-record-dropped", json!([])),
        drift("UNKNOWN", "sim-record-added", json!([])),
    ]
}

/// Asserts that the simulator sold each purchase once, with the quantity that its fault implies.
async fn assert_each_purchase_paid_once(harness: &mut ReconciliationHarness) {
    let mut database = ServiceDatabase::of(&harness.service).await;
    let purchases =
        "SELECT purchase_id::text || ' ' || product_id || ' ' || quantity FROM purchases WHERE vendor = $1";
    let purchases = database.texts(purchases, VENDOR).await;
    let sales = harness.vendor_sales().await;
    assert_eq!(
        (purchases.len(), sales.len()),
        (FIRST_ORDERS.len() + SECOND_ORDERS.len(), purchases.len())
    );
    for purchase in purchases {
        let fields: Vec<&str> = purchase.split(' ').collect();
        let quantity: u64 = fields[2].parse().unwrap();
        let expected = match fields[1] {
            "sim-part" => quantity / 2,
            "sim-record-added" => quantity + 1,
            "sim-record-dropped" => quantity - 1,
            _ => quantity,
        };
        assert_eq!(sales[fields[0]], (fields[1].to_owned(), expected), "{purchase}");
    }
}

/// Returns the partner's summaries and drifts of both days.
async fn preview_of_both_days(
    harness: &mut ReconciliationHarness,
    partner: &mut Partner,
) -> ([u64; 5], Vec<Value>) {
    let (mut sums, mut drifts) = ([0; 5], Vec::new());
    for day in harness.days().await {
        let response = harness::get_preview(&harness.service, partner, &day.to_string()).await;
        let body = expect_success(&response, 200);
        assert_eq!(body["date"], day.to_string());
        sums = add_counts(sums, &body["summary"]);
        drifts.extend(body["drifts"].as_array().unwrap().iter().cloned());
    }
    (sums, drifts)
}

#[tokio::test]
async fn reconciliation_finds_exactly_seeded_drifts() {
    let mut harness = ReconciliationHarness::start(&PRODUCTS).await;
    let mut first = harness.operator.add_partner("10000").await;
    let mut second = harness.operator.add_partner("10000").await;
    harness.order_and_wait(&mut first, &FIRST_ORDERS).await;
    harness.order_and_wait(&mut second, &SECOND_ORDERS).await;

    // 18 and 4 vouchers were delivered; the vendor has one more, lacks one and has one at another price.
    let (counts, drifts) = harness.reconcile().await;
    assert_eq!(counts, [9, 22, 20, 1, 2]);
    assert_eq!(drift_summary(&drifts), expected_drifts());
    assert_each_purchase_paid_once(&mut harness).await;

    assert_preview_is_per_partner(&mut harness, &mut first, &mut second).await;
    assert_resolution_is_retained(&mut harness, &drifts).await;
    assert_upload_gives_same_drifts(&mut harness).await;

    let log = harness.service.log();
    assert!(!log.contains("SIMULATED"), "the log contains a code");
    harness.service.assert_verified();
}

async fn assert_preview_is_per_partner(
    harness: &mut ReconciliationHarness,
    first: &mut Partner,
    second: &mut Partner,
) {
    let (counts, drifts) = preview_of_both_days(harness, first).await;
    assert_eq!(counts, [7, 18, 16, 1, 1]);
    assert_eq!(drifts.len(), 2);
    let fields = [
        "detected_at",
        "order_id",
        "our_allocation",
        "product_id",
        "resolution",
        "vendor",
        "vendor_record",
    ];
    for drift in &drifts {
        let own: Vec<_> = drift.as_object().unwrap().keys().collect();
        assert_eq!(own, fields, "the fields of the spec");
        let order_id = drift["order_id"].as_str().unwrap();
        let order = first.read(&format!("/orders/{order_id}")).await;
        let vouchers = order["vouchers"].as_array().unwrap();
        assert!(
            vouchers
                .iter()
                .any(|voucher| voucher["voucher_id"] == drift["our_allocation"]),
            "{drift}"
        );
        let is_missing = drift["product_id"] == "sim-record-dropped";
        assert_eq!(drift["vendor_record"] == "", is_missing, "{drift}");
        assert_eq!(drift["resolution"], "pending");
    }
    let (counts, drifts) = preview_of_both_days(harness, second).await;
    assert_eq!(counts, [2, 4, 4, 0, 1]);
    assert_eq!(drifts.len(), 1);
    assert_eq!(
        (&drifts[0]["product_id"], &drifts[0]["our_allocation"]),
        (&json!("sim-record-added"), &json!(""))
    );
    let mut other = harness.operator.add_partner("0").await;
    assert_eq!(
        preview_of_both_days(harness, &mut other).await,
        ([0; 5], Vec::new())
    );
}

async fn assert_resolution_is_retained(harness: &mut ReconciliationHarness, drifts: &[Value]) {
    let drift_id = drifts[0]["drift_id"].as_str().unwrap();
    let path = format!("/admin/v1/drifts/{drift_id}/resolve");
    let product_of = json!({ "resolution": "escalated", "reason": "asked the vendor" });
    let after = harness.operator.send_json(Method::POST, &path, &product_of).await;
    assert_eq!(
        (&after["resolution"], &after["reason"]),
        (&json!("escalated"), &json!("asked the vendor"))
    );
    let audit = format!("/admin/v1/audit?action=drift.resolve&subject={drift_id}");
    let trail = harness.operator.get(&audit).await;
    assert_eq!(trail["data"][0]["after"], product_of);
    assert_eq!(trail["data"][0]["before"]["resolution"], "pending");
    let (_, repeated) = harness.reconcile().await;
    assert_eq!(drift_summary(&repeated), expected_drifts());
    let retained = repeated.iter().find(|drift| drift["drift_id"] == drift_id);
    assert_eq!(retained, Some(&after));
}

/// Uploads the same records as files: the drifts keep their ids and resolutions.
async fn assert_upload_gives_same_drifts(harness: &mut ReconciliationHarness) {
    let before = harness.drifts().await;
    let records = harness.vendor_records().await;
    let days = harness.days().await;
    for day in days {
        let path = format!("/admin/v1/reconciliation/{day}/records?vendor={VENDOR}");
        let file = records_csv(&records, day);
        let response = harness.operator.call(Method::POST, &path, "text/csv", file).await;
        let day = expect_success(&response, 200);
        assert_eq!(harness::of_vendor(&day, VENDOR)["source"], "csv");
    }
    assert_eq!(harness.summary_counts(&days).await, [9, 22, 20, 1, 2]);
    assert_eq!(harness.drifts().await, before);
    // Without records, each of our vouchers is missing.
    let header = records_csv(&[], days[0]);
    for day in days {
        let path = format!("/admin/v1/reconciliation/{day}/records?vendor={VENDOR}");
        let response = harness
            .operator
            .call(Method::POST, &path, "text/csv", header.clone())
            .await;
        expect_success(&response, 200);
    }
    let path = format!("/admin/v1/reconciliation/{}", days[1]);
    let today = harness.operator.get(&path).await;
    assert_eq!(harness::of_vendor(&today, VENDOR)["recorded"], 0);
    assert_unfinished_day_is_rejected(harness).await;
}

/// A file covers the time until its last sale: an empty one covers nothing of an unfinished day.
async fn assert_unfinished_day_is_rejected(harness: &mut ReconciliationHarness) {
    let days = harness.days().await;
    assert_eq!(harness.summary_counts(&days).await[2..], [0, 0, 0]);
    let tomorrow = days[1].next_day().unwrap();
    let path = format!("/admin/v1/reconciliation/{tomorrow}/run");
    let response = harness.operator.call_json(Method::POST, &path, "").await;
    expect_error(&response, 422, "VALIDATION_FAILED");
}
