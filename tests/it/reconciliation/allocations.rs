//! Allocations of a day by vendor and batch, from purchases and imports; seeded drifts of the mock vendor.

use hyper::Method;
use serde_json::{Value, json};

use super::harness::{BatchCounts, ReconciliationHarness, add_counts, get_preview};
use vouchsafe_test_harness::{Partner, Sale, expect_success, unique};

/// Imports vouchers of a product into a batch of a vendor.
async fn import_batch(harness: &mut ReconciliationHarness, sale: &Sale, query: &str, count: usize) {
    let path = format!(
        "/admin/v1/stock?product_id={}&denomination=25{query}",
        sale.product_id
    );
    let codes: String = (0..count).map(|_| format!("{}\n", unique("code"))).collect();
    let response = harness
        .operator
        .call(Method::POST, &path, "text/csv", format!("code\n{codes}"));
    assert_eq!(expect_success(&response.await, 200)["imported"], count);
}

async fn order_stock(partner: &mut Partner, product_id: &str, quantity: u32) -> Value {
    let body = json!({ "items": [{ "product_id": product_id, "denomination": 25, "quantity": quantity }] });
    expect_success(&partner.send(&unique("key"), &body).await, 201)
}

fn allocation(
    vendor: &str,
    source: &str,
    batch: &str,
    vouchers: u64,
    records: &str,
    counts: [Option<u64>; 3],
) -> ([String; 3], BatchCounts) {
    let key = [vendor, source, batch].map(str::to_owned);
    (key, (vouchers, records.to_owned(), counts))
}

#[tokio::test]
async fn report_covers_allocations_of_all_sources() {
    let mut harness = ReconciliationHarness::start(&["sim-record-altered"]).await;
    let mut partner = harness.operator.add_partner("10000").await;
    let sale = harness.operator.add_stocked_product(0).await;
    import_batch(&mut harness, &sale, "&batch=delivery-1", 2).await;
    order_stock(&mut partner, &sale.product_id, 2).await;
    import_batch(&mut harness, &sale, "&vendor=simulated&batch=delivery-2", 5).await;
    order_stock(&mut partner, &sale.product_id, 3).await;
    order_stock(&mut partner, "sbx-instant", 4).await;
    let bought = [
        ("sim-record-altered", 2),
        ("sbx-pending", 3),
        ("sbx-vendor-timeout", 1),
        ("sbx-partial", 5),
    ];
    harness.order_and_wait(&mut partner, &bought).await;
    // An order that is cancelled has no vouchers.
    let cancelled = order_stock(&mut partner, &sale.product_id, 1).await;
    let path = format!("/orders/{}/cancel", cancelled["order_id"].as_str().unwrap());
    expect_success(&partner.send_signed(Method::POST, &path, "").await, 200);

    let (counts, drifts) = harness.reconcile().await;
    // The mock delivers 2 of 5 sbx-partial and records 5; it records another face value of
    // sbx-vendor-timeout.
    let (matched, drifted, unmatched) = (3 + 2 + 1, 1 + 1, 3);
    assert_eq!(
        counts,
        [7, 2 + 3 + 4 + 2 + 3 + 1 + 2, matched, drifted, unmatched]
    );
    let none = [None; 3];
    let expected = [
        allocation("by-hand", "import", "delivery-1", 2, "none", none),
        allocation("simulated", "import", "delivery-2", 3, "none", none),
        allocation("mock", "import", "sandbox", 4, "none", none),
        allocation(
            "mock",
            "purchase",
            "-",
            6,
            "compared",
            [Some(5), Some(1), Some(0)],
        ),
        allocation(
            "simulated",
            "purchase",
            "-",
            2,
            "compared",
            [Some(1), Some(1), Some(0)],
        ),
    ];
    assert_eq!(harness.allocations().await, expected.into());
    let mut kinds: Vec<_> = drifts
        .iter()
        .map(|drift| drift["kind"].as_str().unwrap())
        .collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["DIFFERS", "DIFFERS", "UNKNOWN", "UNKNOWN", "UNKNOWN"]);
    let mut sums = [0; 5];
    for day in harness.days().await {
        let response = get_preview(&harness.service, &partner, &day.to_string()).await;
        let body = expect_success(&response, 200);
        let mut fields: Vec<_> = body.as_object().unwrap().keys().collect();
        fields.sort();
        assert_eq!(
            fields,
            ["date", "drifts", "generated_at", "summary"],
            "the fields of the spec"
        );
        sums = add_counts(sums, &body["summary"]);
    }
    assert_eq!(sums, counts);
    harness.service.assert_verified();
}
