//! A voucher whose sale and whose coming in lie on two sides of midnight is one voucher, in whatever order days are compared.

use time::macros::{date, datetime};
use time::{Date, OffsetDateTime};
use vouchsafe::reconciliation::RecordLine;
use vouchsafe::store::{ReconciliationOutcome, RecordsSource};

use crate::test_shop::{TestShop, VENDOR, at, vendor_record};

const DAY: Date = date!(2026 - 11 - 20);
const NEXT: Date = date!(2026 - 11 - 21);
const LAST: Date = date!(2026 - 11 - 22);

fn sold_at(reference: &str, sold_at: OffsetDateTime) -> RecordLine {
    RecordLine {
        sold_at,
        ..vendor_record(sold_at.date(), reference, None)
    }
}

/// Vouchers round midnight: which came in when, and when the vendor says that it sold them.
async fn add_vouchers_around_midnight(shop: &mut TestShop) -> [Vec<RecordLine>; 3] {
    let ours = shop.add_purchase(VENDOR, at(DAY, 23)).await;
    for (prefix, bought_at) in [
        ("sold-before-", datetime!(2026-11-21 00:00:01 UTC)),
        ("ahead-", datetime!(2026-11-20 23:59:59 UTC)),
        ("gone-", datetime!(2026-11-20 23:30 UTC)),
        ("plain-", datetime!(2026-11-21 12:00 UTC)),
        ("slow-", datetime!(2026-11-22 09:00 UTC)),
    ] {
        shop.add_vouchers(ours, prefix, 1, bought_at).await;
    }
    let first = vec![
        sold_at("sold-before-1", datetime!(2026-11-20 23:59:59 UTC)),
        // The answer was lost, and the vendor could not be asked again for two days.
        sold_at("slow-1", datetime!(2026-11-20 14:00 UTC)),
    ];
    let second = vec![
        sold_at("ahead-1", datetime!(2026-11-21 00:00:01 UTC)),
        sold_at("plain-1", datetime!(2026-11-21 11:59 UTC)),
    ];
    [first, second, Vec::new()]
}

#[tokio::test(flavor = "multi_thread")]
async fn midnight_makes_no_drift_in_whatever_order_days_are_compared() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut shop = TestShop::open().await;
        let books = add_vouchers_around_midnight(&mut shop).await;
        for turn in order {
            shop.compare([DAY, NEXT, LAST][turn], books[turn].clone()).await;
        }
        // What was compared before its neighbour was known is compared again with it.
        for turn in [0, 1, 2] {
            shop.compare([DAY, NEXT, LAST][turn], books[turn].clone()).await;
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
async fn what_was_bought_in_the_last_hour_is_looked_for_a_day_later() {
    let mut shop = TestShop::open().await;
    let books = add_vouchers_around_midnight(&mut shop).await;
    let [first, second, _] = books;
    shop.compare(DAY, first).await;
    assert_eq!(shop.drift_kinds(DAY).await, []);
    shop.compare(NEXT, second).await;
    assert_eq!(shop.drift_kinds(NEXT).await, [("gone-1".to_owned(), "MISSING")]);
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_that_is_not_over_is_compared_as_far_as_it_has_come() {
    let mut shop = TestShop::open().await;
    let ours = shop.add_purchase(VENDOR, at(DAY, 8)).await;
    shop.add_vouchers(ours, "A-", 2, at(DAY, 8)).await;
    shop.add_vouchers(ours, "B-", 1, at(DAY, 14)).await;
    let asked_at = |hour, source| {
        let mut books = TestShop::run_for(DAY);
        books.begun_at = at(DAY, hour);
        books.source = source;
        books
    };
    let noon = || vec![vendor_record(DAY, "A-1", Some(ours))];
    // A file is as old as its last sale, at noon; what was asked for at 15 is known to then.
    assert_eq!(
        shop.try_compare(asked_at(15, RecordsSource::Csv), noon()).await,
        ReconciliationOutcome::Completed
    );
    assert_eq!(shop.drift_kinds(DAY).await, [("A-2".to_owned(), "MISSING")]);
    assert_eq!(
        shop.try_compare(asked_at(15, RecordsSource::Http), noon()).await,
        ReconciliationOutcome::Completed
    );
    assert_eq!(shop.drift_kinds(DAY).await.len(), 2);
    shop.close().await;
}
