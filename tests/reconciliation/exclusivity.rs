//! ReconciliationRun that will not do change nothing, and two comparisons of a vendor are not made at a time.

use std::time::Duration;

use time::macros::date;
use tokio::sync::mpsc::channel;
use vouchsafe::store::{RecordsMessage, ReconciliationOutcome};

use crate::test_shop::{TestShop, VENDOR, at, vendor_record};

const DAY: time::Date = date!(2026 - 11 - 20);

#[tokio::test(flavor = "multi_thread")]
async fn books_that_repeat_themselves_or_break_off_change_nothing() {
    let mut shop = TestShop::open().await;
    let ours = shop.add_purchase(VENDOR, at(DAY, 8)).await;
    shop.add_vouchers(ours, "A-", 2, at(DAY, 8)).await;
    let good = shop.compare(DAY, vec![vendor_record(DAY, "A-1", Some(ours))]).await;
    let before = shop.drifts(DAY).await;
    let of = |reference: &str| vendor_record(DAY, reference, Some(ours));
    let twice = vec![of("A-1"), of("A-2"), of("A-1")];
    assert_eq!(
        shop.try_compare(TestShop::run_for(DAY), twice.clone()).await,
        ReconciliationOutcome::DuplicateReference { record: 3 }
    );
    for lines in [vec![], vec![of("A-1"), of("A-2")]] {
        let (sender, intake) = channel(1);
        let feeding = async move {
            if !lines.is_empty() {
                sender.send(RecordsMessage::Records(lines)).await.unwrap();
            }
        };
        let (outcome, ()) = tokio::join!(shop.store.reconcile(TestShop::run_for(DAY), intake), feeding);
        assert_eq!(outcome.unwrap(), ReconciliationOutcome::Incomplete);
    }
    let (sender, intake) = channel(1);
    sender.send(RecordsMessage::Records(twice)).await.unwrap();
    assert_eq!(
        shop.store.reconcile(TestShop::run_for(DAY), intake).await.unwrap(),
        ReconciliationOutcome::DuplicateReference { record: 3 },
        "in one page"
    );
    assert_eq!((shop.summary(DAY).await, shop.drifts(DAY).await), (good, before));
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vendor_is_compared_once_at_a_time_and_goes_on_when_nobody_waits() {
    let mut shop = TestShop::open().await;
    let ours = shop.add_purchase(VENDOR, at(DAY, 8)).await;
    shop.add_vouchers(ours, "A-", 1, at(DAY, 8)).await;
    let (sender, intake) = channel(1);
    let first = shop.store.reconcile(TestShop::run_for(DAY), intake);
    let second = async {
        // Only the first takes what is sent; when it has, it has its turn.
        sender
            .send(RecordsMessage::Records(vec![vendor_record(DAY, "A-1", Some(ours))]))
            .await
            .unwrap();
        sender.send(RecordsMessage::Records(Vec::new())).await.unwrap();
        sender.send(RecordsMessage::Records(Vec::new())).await.unwrap();
        let outcome = shop.try_compare(TestShop::run_for(DAY), Vec::new()).await;
        sender.send(RecordsMessage::End).await.unwrap();
        outcome
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!((first.unwrap(), second), (ReconciliationOutcome::Completed, ReconciliationOutcome::Busy));
    assert_eq!(shop.summary(DAY).await.matched, 1);
    // Who asked goes away once all was handed over; the comparison goes on.
    let (sender, intake) = channel(2);
    sender.send(RecordsMessage::Records(Vec::new())).await.unwrap();
    sender.send(RecordsMessage::End).await.unwrap();
    let asked = tokio::time::timeout(Duration::ZERO, shop.store.reconcile(TestShop::run_for(DAY), intake));
    assert!(asked.await.is_err(), "it was done at once");
    let went_on = async {
        while shop.summary(DAY).await.unmatched == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), went_on)
        .await
        .unwrap();
    shop.close().await;
}
