//! Vouchers sold before and received after midnight match, in whatever order the days are compared.

use time::macros::{date, datetime};
use time::{Date, OffsetDateTime};
use vouchsafe_domain::reconciliation::RecordLine;
use vouchsafe_domain::reconciliation::result::RecordsSource;
use vouchsafe_store::ReconciliationOutcome;

use super::test_shop::{TestShop, VENDOR, at, vendor_record};

const DAY: Date = date!(2026 - 11 - 20);
const NEXT: Date = date!(2026 - 11 - 21);
const LAST: Date = date!(2026 - 11 - 22);

fn sold_at(reference: &str, sold_at: OffsetDateTime) -> RecordLine {
    RecordLine {
        sold_at,
        ..vendor_record(sold_at.date(), reference, None)
    }
}

/// Adds vouchers around midnight; returns the vendor's records of three days.
async fn add_vouchers_around_midnight(shop: &mut TestShop) -> [Vec<RecordLine>; 3] {
    let purchase = shop.add_purchase(VENDOR, at(DAY, 23)).await;
    for (prefix, bought_at) in [
        ("sold-before-", datetime!(2026-11-21 00:00:01 UTC)),
        ("ahead-", datetime!(2026-11-20 23:59:59 UTC)),
        ("gone-", datetime!(2026-11-20 23:30 UTC)),
        ("plain-", datetime!(2026-11-21 12:00 UTC)),
        ("slow-", datetime!(2026-11-22 09:00 UTC)),
    ] {
        shop.add_vouchers(purchase, prefix, 1, bought_at).await;
    }
    let first = vec![
        sold_at("sold-before-1", datetime!(2026-11-20 23:59:59 UTC)),
        // The response was lost and the vendor could not be polled for two days.
        sold_at("slow-1", datetime!(2026-11-20 14:00 UTC)),
    ];
    let second = vec![
        sold_at("ahead-1", datetime!(2026-11-21 00:00:01 UTC)),
        sold_at("plain-1", datetime!(2026-11-21 11:59 UTC)),
    ];
    [first, second, Vec::new()]
}

#[tokio::test(flavor = "multi_thread")]
async fn sale_across_midnight_is_no_drift_in_any_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut shop = TestShop::open().await;
        let records = add_vouchers_around_midnight(&mut shop).await;
        for day_index in order {
            shop.compare([DAY, NEXT, LAST][day_index], records[day_index].clone())
                .await;
        }
        // Compare again, now with the records of the adjacent days.
        for day_index in [0, 1, 2] {
            shop.compare([DAY, NEXT, LAST][day_index], records[day_index].clone())
                .await;
        }
        let mut found = Vec::new();
        for day in [DAY, NEXT, LAST] {
            found.extend(shop.drift_kinds(day).await);
        }
        assert_eq!(found, [("gone-1".to_owned(), "MISSING")], "{order:?}");
        shop.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn purchase_in_last_hour_is_matched_next_day() {
    let mut shop = TestShop::open().await;
    let records = add_vouchers_around_midnight(&mut shop).await;
    let [first, second, _] = records;
    shop.compare(DAY, first).await;
    assert_eq!(shop.drift_kinds(DAY).await, []);
    shop.compare(NEXT, second).await;
    assert_eq!(shop.drift_kinds(NEXT).await, [("gone-1".to_owned(), "MISSING")]);
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_day_is_compared_until_now() {
    let mut shop = TestShop::open().await;
    let purchase = shop.add_purchase(VENDOR, at(DAY, 8)).await;
    shop.add_vouchers(purchase, "A-", 2, at(DAY, 8)).await;
    shop.add_vouchers(purchase, "B-", 1, at(DAY, 14)).await;
    let run_at = |hour, source| {
        let mut run = TestShop::run_for(DAY);
        run.started_at = at(DAY, hour);
        run.source = source;
        run
    };
    let noon_records = || vec![vendor_record(DAY, "A-1", Some(purchase))];
    // A file covers the time until its last sale, at noon; an HTTP run covers the time until it started, at
    // 15:00.
    assert_eq!(
        shop.try_compare(run_at(15, RecordsSource::Csv), noon_records())
            .await,
        ReconciliationOutcome::Completed
    );
    assert_eq!(shop.drift_kinds(DAY).await, [("A-2".to_owned(), "MISSING")]);
    assert_eq!(
        shop.try_compare(run_at(15, RecordsSource::Http), noon_records())
            .await,
        ReconciliationOutcome::Completed
    );
    assert_eq!(shop.drift_kinds(DAY).await.len(), 2);
    shop.close().await;
}
