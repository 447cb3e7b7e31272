//! Memory use of a large day: only one page of either side is in memory.

// A program of its own: it measures the memory of its process.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests panic on failure"
)]

#[path = "database/reconciliation/test_shop.rs"]
#[allow(dead_code, reason = "shared with other suites")]
mod test_shop;

use time::macros::date;
use tokio::sync::mpsc::channel;
use uuid::Uuid;
use vouchsafe_domain::reconciliation::RecordLine;
use vouchsafe_store::{ReconciliationOutcome, RecordsMessage};

use crate::test_shop::{TestShop, VENDOR, at, vendor_record};

const DAY: time::Date = date!(2026 - 11 - 20);

/// Per side.
const VOUCHERS: usize = 200_000;

const VOUCHERS_PER_PURCHASE: usize = 1_000;

/// Permitted growth. All rows of one side would take at least 50 MiB, both sides and their differences more
/// than twice that.
const MAX_GROWTH_MIB: u64 = 24;

/// Resident memory of this process. MiB.
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() / 1_024
}

/// Returns vendor records in which every thousandth voucher is missing and every thousandth is unknown to us.
fn records_page(purchase: Uuid, number: usize) -> Vec<RecordLine> {
    let reference = |voucher: usize| match voucher {
        7 => format!("X-{number}"),
        _ => format!("P{number}-{voucher}"),
    };
    (1..=VOUCHERS_PER_PURCHASE)
        .map(|voucher| vendor_record(DAY, &reference(voucher), Some(purchase)))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn large_day_uses_bounded_memory() {
    let mut shop = TestShop::open().await;
    let mut purchases = Vec::new();
    for number in 0..VOUCHERS / VOUCHERS_PER_PURCHASE {
        let purchase = shop.add_purchase(VENDOR, at(DAY, 8)).await;
        let count = i32::try_from(VOUCHERS_PER_PURCHASE).unwrap();
        shop.add_vouchers(purchase, &format!("P{number}-"), count, at(DAY, 8))
            .await;
        purchases.push(purchase);
    }
    // Warm up with a small comparison.
    let small = DAY.next_day().unwrap();
    shop.compare(small, vec![vendor_record(small, "small", None)])
        .await;
    let before = resident_mib();
    let (sender, intake) = channel(2);
    let compared = shop
        .store
        .reconciliations
        .reconcile(TestShop::run_for(DAY), intake);
    let feeding = async {
        for (number, purchase) in purchases.iter().enumerate() {
            sender
                .send(RecordsMessage::Records(records_page(*purchase, number)))
                .await
                .unwrap();
        }
        sender.send(RecordsMessage::End).await.unwrap();
    };
    let mut peak = before;
    let sampling = async {
        let mut tick = tokio::time::interval(std::time::Duration::from_millis(20));
        loop {
            tick.tick().await;
            peak = peak.max(resident_mib());
        }
    };
    let outcome = tokio::select! {
        (compared, ()) = async { tokio::join!(compared, feeding) } => compared.unwrap(),
        () = sampling => ReconciliationOutcome::Incomplete,
    };
    assert_eq!(outcome, ReconciliationOutcome::Completed);
    let summary = shop.summary(DAY).await;
    let expected = (199_800, 0, 400);
    assert_eq!((summary.matched, summary.drifted, summary.unmatched), expected);
    let growth = peak - before;
    eprintln!("200,000 rows per side: {before} MiB before, at most {growth} MiB more");
    assert!(growth <= MAX_GROWTH_MIB, "{growth} MiB");
    shop.close().await;
}
