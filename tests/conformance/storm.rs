//! Many writers at once: every lock of the commit is fought for, and nothing is lost, sold twice or deadlocked.
//!
//! Also while the sweep takes out of sale what has expired: the clocks of these sellers are so wrong that they still sell it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use time::macros::date;
use vouchsafe::store::PgNode;
use vouchsafe_actors::domain::product::Sku;
use vouchsafe_actors::domain::stock::{ClaimedStock, StockRequest};
use vouchsafe_actors::domain::voucher::{Expiry, Shelved};
use vouchsafe_actors::journal::{Record, Verdict};
use vouchsafe_actors::store::{LaneStore, Store};
use vouchsafe_actors::testing::build;
use vouchsafe_actors::testing::conformance::Subject;

use crate::subject::PgSubject;

fn gift() -> Sku {
    build::sku("gift", 100)
}

fn everything() -> StockRequest {
    StockRequest {
        sku: gift(),
        loaded: Vec::new(),
        enough: 20,
        not_before: Expiry::PAST,
    }
}

/// How many vouchers are sold, in chunks of how many.
const STORM: (i64, i64) = (240, 12);

const NODES: [&str; 3] = ["one", "two", "three"];

const PARTNERS: u64 = 5;

/// Three nodes with two lanes each sell the same stock to the same partners under overlapping keys, while leases lapse.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_lose_their_leases_sell_every_voucher_once() {
    let subject = PgSubject::new().await;
    let (vouchers, chunk) = STORM;
    let days: Vec<_> = (0..chunk).map(build::day).collect();
    prepare(&subject, vouchers / chunk, &days).await;
    let sold = AtomicU64::new(0);
    let mut sellers = Vec::new();
    for name in NODES {
        let node = subject.start(name).await;
        sellers.extend([0, 1].map(|lane| sell(Arc::clone(&node), lane, &sold)));
    }
    let refused = tokio::select! {
        () = lapse_leases(&subject) => unreachable!("leases lapse until all is sold"),
        refused = futures_util::future::join_all(sellers) => refused.iter().sum::<usize>(),
    };
    assert!(refused > 0, "nobody was ever refused: it was no storm");
    let holders = subject.allocations().await.len();
    let vouchers = vouchers.cast_unsigned();
    assert_eq!((holders as u64, sold.into_inner()), (vouchers, vouchers));
    assert_eq!(subject.violations().await, Vec::<String>::new());
    subject.remove().await;
}

/// Half of what is there has expired, and the sweep takes it out while three nodes go on selling it.
#[tokio::test(flavor = "multi_thread")]
async fn what_has_expired_is_swept_or_sold_and_never_both() {
    let subject = PgSubject::new().await;
    let (vouchers, chunk) = STORM;
    let expired = Expiry::on(date!(2020 - 02 - 29));
    let days: Vec<_> = (0..chunk)
        .map(|n| if n < chunk / 2 { expired } else { build::day(n) })
        .collect();
    prepare(&subject, vouchers / chunk, &days).await;
    let sold = AtomicU64::new(0);
    let mut sellers = Vec::new();
    for name in NODES {
        let node = subject.start(name).await;
        sellers.extend([0, 1].map(|lane| sell(Arc::clone(&node), lane, &sold)));
    }
    let sweepers = [subject.start("four").await, subject.start("five").await];
    let (refused, swept, also_swept) = tokio::join!(
        futures_util::future::join_all(sellers),
        sweep(&sweepers[0]),
        sweep(&sweepers[1])
    );
    let (swept, sold) = (swept + also_swept, sold.into_inner());
    assert!(swept > 0 && refused.iter().sum::<usize>() > 0, "they never met");
    assert_eq!(swept + sold, vouchers.cast_unsigned());
    assert_eq!(subject.allocations().await.len() as u64, swept + sold);
    assert_eq!(sweepers[0].sweep_expired().await.unwrap().expired, 0);
    subject.remove().await;
}

/// Sweeps until nothing is left to sweep; returns how many vouchers went out of sale.
async fn sweep(node: &PgNode) -> u64 {
    let mut expired = 0;
    for _ in 0..STORM.0 {
        let swept = node.sweep_expired().await.unwrap();
        expired += swept.expired;
    }
    expired
}

async fn prepare(subject: &PgSubject, chunks: i64, expiries: &[Expiry]) {
    for number in 1..=PARTNERS {
        subject.add_partner(build::partner(number)).await;
        let wallet = build::usd_of(build::partner(number));
        subject.top_up(wallet, build::minor(1_000_000)).await;
    }
    for _ in 0..chunks {
        subject.add_chunk(&gift(), expiries).await;
    }
}

async fn lapse_leases(subject: &PgSubject) {
    for name in NODES.iter().cycle() {
        subject.lapse_lease(name).await;
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

/// Sells whatever it can claim until nothing is left anywhere; returns how many records were refused.
async fn sell(node: Arc<PgNode>, number: u16, sold: &AtomicU64) -> usize {
    let mut lane = node.open_lane(number).await.unwrap();
    let (mut refused, mut turn) = (0, 0);
    loop {
        let claimed = node.claim_stock(everything()).await.unwrap();
        if claimed == ClaimedStock::default() {
            return refused;
        }
        for vouchers in shelved(&claimed).chunks(5) {
            turn += 1;
            let records = records(&node, number, turn, vouchers);
            refused += commit(&mut lane, turn, &records, sold).await;
        }
    }
}

fn shelved(claimed: &ClaimedStock) -> Vec<Shelved> {
    let vouchers = claimed.chunks.iter().flat_map(|chunk| {
        let place = |(stock_id, expiry): &(_, _)| Shelved {
            expiry: *expiry,
            stock_id: *stock_id,
            chunk_id: chunk.chunk_id,
        };
        chunk.vouchers.iter().map(place)
    });
    vouchers.collect()
}

/// Orders of one or two vouchers, of partners in an order that differs from lane to lane; some under a key that others
/// use too.
fn records(node: &PgNode, lane: u16, turn: i64, vouchers: &[Shelved]) -> Vec<Record> {
    let place = |(index, held): (u64, &[Shelved])| {
        let name = format!("{}/{lane}/{turn}/{index}", node.identity().name);
        let number = (index * u64::from(lane + 1) + turn.cast_unsigned()) % PARTNERS + 1;
        let record = build::delivered(build::partner(number), &name, &[(&gift(), held)]);
        if turn % 7 == 0 && index == 0 {
            return build::under_key(&format!("shared {turn}"), record);
        }
        record
    };
    (0..).zip(vouchers.chunks(2)).map(place).collect()
}

/// Commits a batch, counts what it sold, and returns how many records were refused. Locks are taken in one order: nothing
/// is ever in the way.
async fn commit(lane: &mut Box<dyn LaneStore>, batch: i64, records: &[Record], sold: &AtomicU64) -> usize {
    let verdicts = lane.commit(batch, records).await.unwrap();
    let mut refused = 0;
    for (record, verdict) in records.iter().zip(verdicts) {
        if matches!(verdict, Verdict::Committed(_)) {
            sold.fetch_add(record.vouchers() as u64, Ordering::Relaxed);
        } else {
            refused += 1;
        }
    }
    refused
}
