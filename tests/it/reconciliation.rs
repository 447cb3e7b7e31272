//! Vouchers that are bought from a simulator whose books lack some, have some that were not sold, or say something else of
//! them: exactly these drifts are found, whichever way the books come. The simulator's own books say that each purchase was
//! paid once.

mod invalid_input;
mod harness;

use hyper::Method;
use serde_json::{Value, json};

use self::harness::{VENDOR, ReconciliationHarness, records_csv, add_counts};
use crate::support::{Database, Partner, expect_success, expect_error};

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

/// What the first partner orders, and how many of it the vendor sells and has in its books.
const FIRST_ORDERS: [(&str, u32); 7] = [
    ("game-us", 3),
    ("sim-down", 1),
    ("sim-drop", 2),
    ("sim-part", 4),
    ("sim-pending", 4),
    ("sim-record-altered", 3),
    ("sim-record-dropped", 3),
];

/// What the second one orders.
const SECOND_ORDERS: [(&str, u32); 2] = [("game-us", 2), ("sim-record-added", 2)];

/// Kind, product and differences of each drift, in a row.
fn drift_summary(drifts: &[Value]) -> Vec<(String, String, Value)> {
    let said = |drift: &Value| {
        let side = if drift["ours"].is_null() { "theirs" } else { "ours" };
        drift[side]["product_id"].as_str().unwrap().to_owned()
    };
    let mut told: Vec<_> = drifts
        .iter()
        .map(|drift| {
            (
                drift["kind"].as_str().unwrap().to_owned(),
                said(drift),
                drift["differences"].clone(),
            )
        })
        .collect();
    told.sort_by(|one, other| one.0.cmp(&other.0));
    told
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

/// The simulator sold each purchase once, and what it sold is what its faults make of it.
async fn assert_each_purchase_paid_once(world: &mut ReconciliationHarness) {
    let mut database = Database::of(&world.service).await;
    let purchases =
        "SELECT purchase_id::text || ' ' || product_id || ' ' || quantity FROM purchases WHERE vendor = $1";
    let purchases = database.texts(purchases, VENDOR).await;
    let sales = world.vendor_sales().await;
    assert_eq!(
        (purchases.len(), sales.len()),
        (FIRST_ORDERS.len() + SECOND_ORDERS.len(), purchases.len())
    );
    for purchase in purchases {
        let words: Vec<&str> = purchase.split(' ').collect();
        let quantity: u64 = words[2].parse().unwrap();
        let in_books = match words[1] {
            "sim-part" => quantity / 2,
            "sim-record-added" => quantity + 1,
            "sim-record-dropped" => quantity - 1,
            _ => quantity,
        };
        assert_eq!(sales[words[0]], (words[1].to_owned(), in_books), "{purchase}");
    }
}

/// What a partner sees of both days.
async fn preview_of_both_days(world: &mut ReconciliationHarness, partner: &mut Partner) -> ([u64; 5], Vec<Value>) {
    let (mut sums, mut drifts) = ([0; 5], Vec::new());
    for day in world.days().await {
        let answer = harness::get_preview(&world.service, partner, &day.to_string()).await;
        let body = expect_success(&answer, 200);
        assert_eq!(body["date"], day.to_string());
        sums = add_counts(sums, &body["summary"]);
        drifts.extend(body["drifts"].as_array().unwrap().iter().cloned());
    }
    (sums, drifts)
}

#[tokio::test]
async fn seeded_drifts_are_found_and_no_others_and_each_purchase_was_paid_once() {
    let mut world = ReconciliationHarness::start(&PRODUCTS).await;
    let mut first = world.operator.add_partner("10000").await;
    let mut second = world.operator.add_partner("10000").await;
    world.order_and_wait(&mut first, &FIRST_ORDERS).await;
    world.order_and_wait(&mut second, &SECOND_ORDERS).await;

    // 18 and 4 vouchers were delivered, one is in the books besides; one of ours is not, one is at another price.
    let (counts, drifts) = world.reconcile().await;
    assert_eq!(counts, [9, 22, 20, 1, 2]);
    assert_eq!(drift_summary(&drifts), expected_drifts());
    assert_each_purchase_paid_once(&mut world).await;

    assert_preview_is_per_partner(&mut world, &mut first, &mut second).await;
    assert_resolution_is_retained(&mut world, &drifts).await;
    assert_upload_gives_same_drifts(&mut world).await;

    let log = world.service.log();
    assert!(!log.contains("SIMULATED"), "a code is in the log");
    world.service.assert_verified();
}

async fn assert_preview_is_per_partner(world: &mut ReconciliationHarness, first: &mut Partner, second: &mut Partner) {
    let (counts, drifts) = preview_of_both_days(world, first).await;
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
        assert_eq!(own, fields, "the shape of the spec");
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
    let (counts, drifts) = preview_of_both_days(world, second).await;
    assert_eq!(counts, [2, 4, 4, 0, 1]);
    assert_eq!(drifts.len(), 1);
    assert_eq!(
        (&drifts[0]["product_id"], &drifts[0]["our_allocation"]),
        (&json!("sim-record-added"), &json!(""))
    );
    let mut stranger = world.operator.add_partner("0").await;
    assert_eq!(preview_of_both_days(world, &mut stranger).await, ([0; 5], Vec::new()));
}

async fn assert_resolution_is_retained(world: &mut ReconciliationHarness, drifts: &[Value]) {
    let drift_id = drifts[0]["drift_id"].as_str().unwrap();
    let path = format!("/admin/v1/drifts/{drift_id}/resolve");
    let said = json!({ "resolution": "escalated", "reason": "asked the vendor" });
    let after = world.operator.send_json(Method::POST, &path, &said).await;
    assert_eq!(
        (&after["resolution"], &after["reason"]),
        (&json!("escalated"), &json!("asked the vendor"))
    );
    let audit = format!("/admin/v1/audit?action=drift.resolve&subject={drift_id}");
    let trail = world.operator.get(&audit).await;
    assert_eq!(trail["data"][0]["after"], said);
    assert_eq!(trail["data"][0]["before"]["resolution"], "pending");
    let (_, again) = world.reconcile().await;
    assert_eq!(drift_summary(&again), expected_drifts());
    let kept = again.iter().find(|drift| drift["drift_id"] == drift_id);
    assert_eq!(kept, Some(&after));
}

/// The same books, uploaded: the same drifts, under the same ids, with what was said of them.
async fn assert_upload_gives_same_drifts(world: &mut ReconciliationHarness) {
    let before = world.drifts().await;
    let records = world.vendor_records().await;
    let days = world.days().await;
    for day in days {
        let path = format!("/admin/v1/reconciliation/{day}/records?vendor={VENDOR}");
        let file = records_csv(&records, day);
        let answer = world.operator.call(Method::POST, &path, "text/csv", file).await;
        assert_eq!(expect_success(&answer, 200)["vendors"][0]["source"], "csv");
    }
    assert_eq!(world.summary_counts(&days).await, [9, 22, 20, 1, 2]);
    assert_eq!(world.drifts().await, before);
    // Nothing was sold: each voucher of ours is missing.
    let header = records_csv(&[], days[0]);
    for day in days {
        let path = format!("/admin/v1/reconciliation/{day}/records?vendor={VENDOR}");
        let answer = world
            .operator
            .call(Method::POST, &path, "text/csv", header.clone())
            .await;
        expect_success(&answer, 200);
    }
    let path = format!("/admin/v1/reconciliation/{}", days[1]);
    let today = world.operator.get(&path).await;
    assert_eq!(today["vendors"][0]["recorded"], 0);
    assert_unfinished_day_is_rejected(world).await;
}

/// A file is as old as its last sale: one without a sale says nothing of a day that is not over.
async fn assert_unfinished_day_is_rejected(world: &mut ReconciliationHarness) {
    let days = world.days().await;
    assert_eq!(world.summary_counts(&days).await[2..], [0, 0, 0]);
    let tomorrow = days[1].next_day().unwrap();
    let path = format!("/admin/v1/reconciliation/{tomorrow}/run");
    let answer = world
        .operator
        .call(Method::POST, &path, "application/json", "")
        .await;
    expect_error(&answer, 422, "VALIDATION_FAILED");
}
