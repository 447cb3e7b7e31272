//! A large day takes no more memory than a small one: what is in memory is a page of either side.

use time::macros::date;
use tokio::sync::mpsc::channel;
use uuid::Uuid;
use vouchsafe::reconciliation::RecordLine;
use vouchsafe::store::{RecordsMessage, ReconciliationOutcome};

use crate::test_shop::{TestShop, VENDOR, at, vendor_record};

const DAY: time::Date = date!(2026 - 11 - 20);

/// Vouchers on either side.
const VOUCHERS: usize = 200_000;

/// Vouchers of a purchase.
const VOUCHERS_PER_PURCHASE: usize = 1_000;

/// What memory may grow by. MiB. All rows of a side in memory would take some 50 MiB at least, both and what is found of
/// them more than twice of that.
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

/// The books: every thousandth voucher is missing, every thousandth is one that we do not have.
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
async fn memory_stays_flat_at_two_hundred_thousand_rows_a_side() {
    let mut shop = TestShop::open().await;
    let mut purchases = Vec::new();
    for number in 0..VOUCHERS / VOUCHERS_PER_PURCHASE {
        let purchase = shop.add_purchase(VENDOR, at(DAY, 8)).await;
        let count = i32::try_from(VOUCHERS_PER_PURCHASE).unwrap();
        shop.add_vouchers(purchase, &format!("P{number}-"), count, at(DAY, 8))
            .await;
        purchases.push(purchase);
    }
    // What a comparison takes at all is taken by a small one.
    let small = DAY.next_day().unwrap();
    shop.compare(small, vec![vendor_record(small, "small", None)]).await;
    let before = resident_mib();
    let (sender, intake) = channel(2);
    let compared = shop.store.reconcile(TestShop::run_for(DAY), intake);
    let feeding = async {
        for (number, purchase) in purchases.iter().enumerate() {
            sender.send(RecordsMessage::Records(records_page(*purchase, number))).await.unwrap();
        }
        sender.send(RecordsMessage::End).await.unwrap();
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
        () = watching => ReconciliationOutcome::Incomplete,
    };
    assert_eq!(outcome, ReconciliationOutcome::Completed);
    let summary = shop.summary(DAY).await;
    let expected = (199_800, 0, 400);
    assert_eq!((summary.matched, summary.drifted, summary.unmatched), expected);
    let grown = peak - before;
    eprintln!("200,000 rows a side: {before} MiB before, {grown} MiB more at the most");
    assert!(grown <= MAX_GROWTH_MIB, "{grown} MiB");
    shop.close().await;
}
