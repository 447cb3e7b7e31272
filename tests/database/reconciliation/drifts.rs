//! Drift kinds, and drifts after a repeated comparison.

use time::macros::date;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::reconciliation::DriftKind;
use vouchsafe_domain::reconciliation::drift::DriftResolution;
use vouchsafe_domain::reconciliation::result::ReconciliationSummary;

use super::test_shop::{TestShop, VENDOR, at, vendor_record};

const DAY: time::Date = date!(2026 - 11 - 20);

const fn summary(orders_total: i64, matched: i64, drifted: i64, unmatched: i64) -> ReconciliationSummary {
    ReconciliationSummary {
        orders_total,
        vouchers_allocated: 0,
        matched,
        drifted,
        unmatched,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_drift_kind_is_found() {
    let mut shop = TestShop::open().await;
    let purchase = shop.add_purchase(VENDOR, at(DAY, 8)).await;
    let other_purchase = shop.add_purchase(VENDOR, at(DAY, 8)).await;
    let other_vendor_purchase = shop.add_purchase("another", at(DAY, 8)).await;
    shop.add_vouchers(purchase, "A-", 6, at(DAY, 8)).await;
    shop.add_vouchers(other_vendor_purchase, "A-", 9, at(DAY, 8))
        .await;
    let earlier = DAY.previous_day().unwrap();
    // The voucher is also in the records of the day before; those of the day after are unknown.
    shop.compare(earlier, vec![vendor_record(earlier, "A-5", Some(purchase))])
        .await;
    let mut more_expensive = vendor_record(DAY, "A-2", Some(purchase));
    more_expensive.terms.denomination.amount = Amount::from_minor(5_000);
    let lines = vec![
        vendor_record(DAY, "A-1", Some(purchase)),
        more_expensive,
        vendor_record(DAY, "A-3", Some(other_purchase)),
        vendor_record(DAY, "A-5", Some(purchase)),
        vendor_record(DAY, "A-6", None),
        vendor_record(DAY, "B-1", Some(other_purchase)),
        vendor_record(DAY, "B-2", None),
    ];
    assert_eq!(shop.compare(DAY, lines).await, summary(2, 2, 3, 3));
    let expected = [
        ("A-2", "DIFFERS"),
        ("A-3", "DIFFERS"),
        ("A-4", "MISSING"),
        ("A-5", "REPEATED"),
        ("B-1", "UNKNOWN"),
        ("B-2", "UNKNOWN"),
    ];
    assert_eq!(
        shop.drift_kinds(DAY).await,
        expected.map(|(reference, kind)| (reference.to_owned(), kind))
    );
    let drifts = shop.drifts(DAY).await;
    let differences = |index: usize| {
        let drift = &drifts[index];
        drift
            .ours
            .as_ref()
            .unwrap()
            .differences(drift.theirs.as_ref().unwrap())
    };
    assert_eq!(
        (differences(0), differences(1)),
        (vec!["denomination"], vec!["purchase_id"])
    );
    assert!(drifts[2].theirs.is_none() && drifts[4].ours.is_none());
    assert!(
        drifts[4].order.is_some() && drifts[5].order.is_none(),
        "a record identifies its order by its purchase"
    );
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_comparison_keeps_resolution_of_unchanged_drift() {
    let mut shop = TestShop::open().await;
    let purchase = shop.add_purchase(VENDOR, at(DAY, 8)).await;
    shop.add_vouchers(purchase, "A-", 4, at(DAY, 8)).await;
    let of_price = |reference: &str, minor| {
        let mut line = vendor_record(DAY, reference, Some(purchase));
        line.terms.denomination.amount = Amount::from_minor(minor);
        line
    };
    let first = vec![
        vendor_record(DAY, "A-1", Some(purchase)),
        of_price("A-2", 5_000),
        of_price("A-3", 5_000),
    ];
    assert_eq!(shop.compare(DAY, first).await, summary(1, 1, 2, 1));
    for drift in shop.drifts(DAY).await {
        assert_eq!(shop.resolve(&drift).await.resolution, DriftResolution::Resolved);
    }
    let before = shop.drifts(DAY).await;
    // A-2 is unchanged, A-3 has another price, A-4 is now present, B-1 is new.
    let second = vec![
        vendor_record(DAY, "A-1", Some(purchase)),
        of_price("A-2", 5_000),
        of_price("A-3", 7_500),
        vendor_record(DAY, "A-4", Some(purchase)),
        vendor_record(DAY, "B-1", None),
    ];
    assert_eq!(shop.compare(DAY, second).await, summary(1, 2, 2, 1));
    let after = shop.drifts(DAY).await;
    assert_eq!(after[0], before[0]);
    assert_eq!(
        (after[0].resolution, after[0].kind),
        (DriftResolution::Resolved, DriftKind::Differs)
    );
    assert_ne!(after[1].drift_id, before[1].drift_id);
    assert_eq!(
        (after[1].resolution, &after[1].reason),
        (DriftResolution::Pending, &None)
    );
    assert_eq!(
        (after[2].reference.as_str(), after[2].kind),
        ("B-1", DriftKind::Unknown)
    );
    assert_eq!(after.len(), 3);
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reference_shared_by_purchases_matches_once() {
    let mut shop = TestShop::open().await;
    for _ in 0..3 {
        let purchase = shop.add_purchase(VENDOR, at(DAY, 8)).await;
        shop.add_vouchers(purchase, "A-", 1, at(DAY, 8)).await;
    }
    assert_eq!(
        shop.compare(DAY, vec![vendor_record(DAY, "A-1", None)]).await,
        summary(3, 1, 0, 2)
    );
    assert_eq!(shop.drift_kinds(DAY).await.len(), 2);
    shop.close().await;
}
