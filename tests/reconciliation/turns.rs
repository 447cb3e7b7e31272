//! Books that will not do change nothing, and two comparisons of a vendor are not made at a time.

use std::time::Duration;

use time::macros::date;
use tokio::sync::mpsc::channel;
use vouchsafe::store::{Intake, Reconciled};

use crate::shop::{Shop, VENDOR, at, line};

const DAY: time::Date = date!(2026 - 11 - 20);

#[tokio::test(flavor = "multi_thread")]
async fn books_that_repeat_themselves_or_break_off_change_nothing() {
    let mut shop = Shop::open().await;
    let ours = shop.purchase(VENDOR, at(DAY, 8)).await;
    shop.bought(ours, "A-", 2, at(DAY, 8)).await;
    let good = shop.compare(DAY, vec![line(DAY, "A-1", Some(ours))]).await;
    let before = shop.drifts(DAY).await;
    let of = |reference: &str| line(DAY, reference, Some(ours));
    let twice = vec![of("A-1"), of("A-2"), of("A-1")];
    assert_eq!(
        shop.try_to(Shop::books(DAY), twice.clone()).await,
        Reconciled::Repeated { record: 3 }
    );
    for lines in [vec![], vec![of("A-1"), of("A-2")]] {
        let (sender, intake) = channel(1);
        let feeding = async move {
            if !lines.is_empty() {
                sender.send(Intake::Lines(lines)).await.unwrap();
            }
        };
        let (outcome, ()) = tokio::join!(shop.store.reconcile(Shop::books(DAY), intake), feeding);
        assert_eq!(outcome.unwrap(), Reconciled::Abandoned);
    }
    let (sender, intake) = channel(1);
    sender.send(Intake::Lines(twice)).await.unwrap();
    assert_eq!(
        shop.store.reconcile(Shop::books(DAY), intake).await.unwrap(),
        Reconciled::Repeated { record: 3 },
        "in one page"
    );
    assert_eq!((shop.summary(DAY).await, shop.drifts(DAY).await), (good, before));
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vendor_is_compared_once_at_a_time_and_goes_on_when_nobody_waits() {
    let mut shop = Shop::open().await;
    let ours = shop.purchase(VENDOR, at(DAY, 8)).await;
    shop.bought(ours, "A-", 1, at(DAY, 8)).await;
    let (sender, intake) = channel(1);
    let first = shop.store.reconcile(Shop::books(DAY), intake);
    let second = async {
        // Only the first takes what is sent; when it has, it has its turn.
        sender
            .send(Intake::Lines(vec![line(DAY, "A-1", Some(ours))]))
            .await
            .unwrap();
        sender.send(Intake::Lines(Vec::new())).await.unwrap();
        sender.send(Intake::Lines(Vec::new())).await.unwrap();
        let outcome = shop.try_to(Shop::books(DAY), Vec::new()).await;
        sender.send(Intake::End).await.unwrap();
        outcome
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!((first.unwrap(), second), (Reconciled::Done, Reconciled::Busy));
    assert_eq!(shop.summary(DAY).await.matched, 1);
    // Who asked goes away once all was handed over; the comparison goes on.
    let (sender, intake) = channel(2);
    sender.send(Intake::Lines(Vec::new())).await.unwrap();
    sender.send(Intake::End).await.unwrap();
    let asked = tokio::time::timeout(Duration::ZERO, shop.store.reconcile(Shop::books(DAY), intake));
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
