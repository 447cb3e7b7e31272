//! Invalid records change nothing, and comparisons of one vendor exclude each other.

use std::time::Duration;

use sqlx::Executor as _;
use time::macros::date;
use tokio::sync::mpsc::channel;
use vouchsafe_store::{AuditActor, ReconciliationOutcome, RecordsMessage};
use vouchsafe_test_harness::WAIT_TIMEOUT;

use super::test_shop::{TestShop, VENDOR, at, vendor_record};

const DAY: time::Date = date!(2026 - 11 - 20);

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_or_truncated_records_change_nothing() {
    let mut shop = TestShop::open().await;
    let purchase = shop.add_purchase(VENDOR, at(DAY, 8)).await;
    shop.add_vouchers(purchase, "A-", 2, at(DAY, 8)).await;
    let expected = shop
        .compare(DAY, vec![vendor_record(DAY, "A-1", Some(purchase))])
        .await;
    let before = shop.drifts(DAY).await;
    let of = |reference: &str| vendor_record(DAY, reference, Some(purchase));
    let duplicated = vec![of("A-1"), of("A-2"), of("A-1")];
    assert_eq!(
        shop.try_compare(TestShop::run_for(DAY), duplicated.clone()).await,
        ReconciliationOutcome::DuplicateReference { record: 3 }
    );
    for lines in [vec![], vec![of("A-1"), of("A-2")]] {
        let (sender, intake) = channel(1);
        let sending = async move {
            if !lines.is_empty() {
                sender.send(RecordsMessage::Records(lines)).await.unwrap();
            }
        };
        let (outcome, ()) = tokio::join!(
            shop.store
                .reconciliations
                .reconcile(TestShop::run_for(DAY), intake),
            sending
        );
        assert_eq!(outcome.unwrap(), ReconciliationOutcome::Incomplete);
    }
    let (sender, intake) = channel(1);
    sender.send(RecordsMessage::Records(duplicated)).await.unwrap();
    assert_eq!(
        shop.store
            .reconciliations
            .reconcile(TestShop::run_for(DAY), intake)
            .await
            .unwrap(),
        ReconciliationOutcome::DuplicateReference { record: 3 },
        "within one page"
    );
    assert_eq!(
        (shop.summary(DAY).await, shop.drifts(DAY).await),
        (expected, before)
    );
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vendor_is_compared_once_at_a_time_and_survives_disconnect() {
    let mut shop = TestShop::open().await;
    let purchase = shop.add_purchase(VENDOR, at(DAY, 8)).await;
    shop.add_vouchers(purchase, "A-", 1, at(DAY, 8)).await;
    let (sender, intake) = channel(1);
    let first = shop
        .store
        .reconciliations
        .reconcile(TestShop::run_for(DAY), intake);
    let second = async {
        // Only the first comparison receives messages: once it has, it holds the lock.
        sender
            .send(RecordsMessage::Records(vec![vendor_record(
                DAY,
                "A-1",
                Some(purchase),
            )]))
            .await
            .unwrap();
        sender.send(RecordsMessage::Records(Vec::new())).await.unwrap();
        sender.send(RecordsMessage::Records(Vec::new())).await.unwrap();
        let outcome = shop.try_compare(TestShop::run_for(DAY), Vec::new()).await;
        sender.send(RecordsMessage::End).await.unwrap();
        outcome
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(
        (first.unwrap(), second),
        (ReconciliationOutcome::Completed, ReconciliationOutcome::Busy)
    );
    assert_eq!(shop.summary(DAY).await.matched, 1);
    // The caller disconnects after it has sent everything; the comparison continues.
    let (sender, intake) = channel(2);
    sender.send(RecordsMessage::Records(Vec::new())).await.unwrap();
    sender.send(RecordsMessage::End).await.unwrap();
    let call = tokio::time::timeout(
        Duration::ZERO,
        shop.store
            .reconciliations
            .reconcile(TestShop::run_for(DAY), intake),
    );
    assert!(call.await.is_err(), "the comparison completed too early");
    let completed = async {
        while shop.summary(DAY).await.unmatched == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, completed).await.unwrap();
    shop.close().await;
}

/// A comparison locks its vendor's row, then the row of the day.
#[tokio::test(flavor = "multi_thread")]
async fn request_during_comparison_waits_without_deadlock() {
    let mut shop = TestShop::open().await;
    let reconciliations = shop.store.reconciliations.clone();
    let request = || reconciliations.request(DAY, vec![VENDOR.to_owned()], AuditActor::service());
    request().await.unwrap();
    let lock = "BEGIN; UPDATE reconciliations SET attempts = 0";
    shop.connection.execute(lock).await.unwrap();
    let comparison = async {
        let is_blocking = "SELECT EXISTS (
            SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid)))";
        while !sqlx::query_scalar::<_, bool>(is_blocking)
            .fetch_one(&mut shop.connection)
            .await
            .unwrap()
        {
            tokio::task::yield_now().await;
        }
        let end = "UPDATE reconciled_days SET requested_until = NULL; COMMIT";
        shop.connection.execute(end).await
    };
    let (request, comparison) = tokio::join!(request(), comparison);
    request.unwrap();
    comparison.unwrap();
    shop.close().await;
}
