//! Which drifts are found, and what becomes of them when the day is compared again?

use time::macros::date;
use vouchsafe::reconciliation::DriftKind;
use vouchsafe::store::{DriftResolution, ReconciliationSummary};
use vouchsafe_actors::domain::money::Amount;

use crate::test_shop::{TestShop, VENDOR, at, vendor_record};

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
async fn each_kind_of_drift_is_found_and_nothing_else() {
    let mut shop = TestShop::open().await;
    let ours = shop.add_purchase(VENDOR, at(DAY, 8)).await;
    let other = shop.add_purchase(VENDOR, at(DAY, 8)).await;
    let elsewhere = shop.add_purchase("another", at(DAY, 8)).await;
    shop.add_vouchers(ours, "A-", 6, at(DAY, 8)).await;
    shop.add_vouchers(elsewhere, "A-", 9, at(DAY, 8)).await;
    let earlier = DAY.previous_day().unwrap();
    // The voucher is in the books of the day before, too, and those of the day after are not known.
    shop.compare(earlier, vec![vendor_record(earlier, "A-5", Some(ours))])
        .await;
    let mut dearer = vendor_record(DAY, "A-2", Some(ours));
    dearer.said.denomination.amount = Amount::from_minor(5_000);
    let lines = vec![
        vendor_record(DAY, "A-1", Some(ours)),
        dearer,
        vendor_record(DAY, "A-3", Some(other)),
        vendor_record(DAY, "A-5", Some(ours)),
        vendor_record(DAY, "A-6", None),
        vendor_record(DAY, "B-1", Some(other)),
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
        "a record tells whose it is by its purchase"
    );
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_replaced_and_what_was_said_of_a_drift_stays_while_it_is_there() {
    let mut shop = TestShop::open().await;
    let ours = shop.add_purchase(VENDOR, at(DAY, 8)).await;
    shop.add_vouchers(ours, "A-", 4, at(DAY, 8)).await;
    let of_price = |reference: &str, minor| {
        let mut line = vendor_record(DAY, reference, Some(ours));
        line.said.denomination.amount = Amount::from_minor(minor);
        line
    };
    let first = vec![
        vendor_record(DAY, "A-1", Some(ours)),
        of_price("A-2", 5_000),
        of_price("A-3", 5_000),
    ];
    assert_eq!(shop.compare(DAY, first).await, summary(1, 1, 2, 1));
    for drift in shop.drifts(DAY).await {
        assert_eq!(shop.resolve(&drift).await.resolution, DriftResolution::Resolved);
    }
    let before = shop.drifts(DAY).await;
    // A-2 is as it was, A-3 is wrong in another way, A-4 has been found, B-1 is new.
    let second = vec![
        vendor_record(DAY, "A-1", Some(ours)),
        of_price("A-2", 5_000),
        of_price("A-3", 7_500),
        vendor_record(DAY, "A-4", Some(ours)),
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
async fn a_reference_that_stands_for_two_of_ours_is_one_record_short() {
    let mut shop = TestShop::open().await;
    for _ in 0..3 {
        let ours = shop.add_purchase(VENDOR, at(DAY, 8)).await;
        shop.add_vouchers(ours, "A-", 1, at(DAY, 8)).await;
    }
    assert_eq!(
        shop.compare(DAY, vec![vendor_record(DAY, "A-1", None)]).await,
        summary(3, 1, 0, 2)
    );
    assert_eq!(shop.drift_kinds(DAY).await.len(), 2);
    shop.close().await;
}
