//! A large day takes no more memory than a small one: what is in memory is a page of either side.

use time::macros::date;
use tokio::sync::mpsc::channel;
use uuid::Uuid;
use vouchsafe::reconciliation::Line;
use vouchsafe::store::{Intake, Reconciled};

use crate::shop::{Shop, VENDOR, at, line};

const DAY: time::Date = date!(2026 - 11 - 20);

/// Vouchers on either side.
const VOUCHERS: usize = 200_000;

/// Vouchers of a purchase.
const OF_PURCHASE: usize = 1_000;

/// What memory may grow by. MiB. All rows of a side in memory would take some 50 MiB at least, both and what is found of
/// them more than twice of that.
const MOST_MIB: u64 = 24;

/// Resident memory of this process. MiB.
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() / 1_024
}

/// The books: every thousandth voucher is missing, every thousandth is one that we do not have.
fn page(purchase: Uuid, number: usize) -> Vec<Line> {
    let reference = |voucher: usize| match voucher {
        7 => format!("X-{number}"),
        _ => format!("P{number}-{voucher}"),
    };
    (1..=OF_PURCHASE)
        .map(|voucher| line(DAY, &reference(voucher), Some(purchase)))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_stays_flat_at_two_hundred_thousand_rows_a_side() {
    let mut shop = Shop::open().await;
    let mut purchases = Vec::new();
    for number in 0..VOUCHERS / OF_PURCHASE {
        let purchase = shop.purchase(VENDOR, at(DAY, 8)).await;
        let count = i32::try_from(OF_PURCHASE).unwrap();
        shop.bought(purchase, &format!("P{number}-"), count, at(DAY, 8))
            .await;
        purchases.push(purchase);
    }
    // What a comparison takes at all is taken by a small one.
    let small = DAY.next_day().unwrap();
    shop.compare(small, vec![line(small, "small", None)]).await;
    let before = resident_mib();
    let (sender, intake) = channel(2);
    let compared = shop.store.reconcile(Shop::books(DAY), intake);
    let feeding = async {
        for (number, purchase) in purchases.iter().enumerate() {
            sender.send(Intake::Lines(page(*purchase, number))).await.unwrap();
        }
        sender.send(Intake::End).await.unwrap();
    };
    let mut peak = before;
    let watching = async {
        let mut tick = tokio::time::interval(std::time::Duration::from_millis(20));
        loop {
            tick.tick().await;
            peak = peak.max(resident_mib());
        }
    };
    let outcome = tokio::select! {
        (compared, ()) = async { tokio::join!(compared, feeding) } => compared.unwrap(),
        () = watching => Reconciled::Abandoned,
    };
    assert_eq!(outcome, Reconciled::Done);
    let summary = shop.summary(DAY).await;
    let expected = (199_800, 0, 400);
    assert_eq!((summary.matched, summary.drifted, summary.unmatched), expected);
    let grown = peak - before;
    eprintln!("200,000 rows a side: {before} MiB before, {grown} MiB more at the most");
    assert!(grown <= MOST_MIB, "{grown} MiB");
    shop.close().await;
}
