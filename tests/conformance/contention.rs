//! Contention: many concurrent writers lose nothing, sell nothing twice and do not deadlock.
//!
//! One test runs during expiry of stock, with sellers whose clocks are so wrong that they still sell expired
//! vouchers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use time::macros::date;
use tokio::runtime::Handle;
use vouchsafe_actors::ports::record::{Record, Verdict};
use vouchsafe_actors::ports::store::{LaneStore, Store};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::stock::{ClaimedStock, StockRequest};
use vouchsafe_domain::voucher::{Expiry, StockVoucher};
use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::{Subject, claimed_vouchers};
use vouchsafe_store::{PgNode, PgStore, Stock};

use crate::subject::PgSubject;

fn gift() -> Sku {
    build::sku("gift", 100)
}

fn stock_request() -> StockRequest {
    StockRequest {
        sku: gift(),
        loaded_chunks: Vec::new(),
        target_quantity: 20,
        not_before: Expiry::PAST,
        demanded: 0,
    }
}

/// Number of vouchers.
const STOCK: i64 = 240;

/// Vouchers per chunk.
const CHUNK: i64 = 12;

const NODES: [&str; 3] = ["one", "two", "three"];

const PARTNERS: u64 = 5;

/// Three nodes with two lanes each sell the same stock to the same partners under overlapping keys, while
/// leases expire.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_losing_leases_sell_every_voucher_once() {
    let days: Vec<_> = (0..CHUNK).map(build::day).collect();
    let (subject, nodes) = prepare(&days).await;
    let sold = AtomicU64::new(0);
    let rejected = tokio::select! {
        () = expire_leases(&subject) => unreachable!("the loop never ends"),
        rejected = sell_everything(&nodes, &sold) => rejected,
    };
    assert!(rejected > 0, "no record was rejected: no contention");
    let holders = subject.allocations().await.len() as u64;
    let vouchers = STOCK.cast_unsigned();
    assert_eq!((holders, sold.into_inner()), (vouchers, vouchers));
    assert_eq!(subject.violations().await, Vec::<String>::new());
    subject.remove().await;
}

/// Half of the stock has expired and is taken out of sale while three nodes sell it.
#[tokio::test(flavor = "multi_thread")]
async fn expired_voucher_is_expired_or_sold_but_never_both() {
    let expired = Expiry::on(date!(2020 - 02 - 29));
    let days: Vec<_> = (0..CHUNK)
        .map(|n| if n < CHUNK / 2 { expired } else { build::day(n) })
        .collect();
    let (subject, nodes) = prepare(&days).await;
    let sold = AtomicU64::new(0);
    let stocks = [(); 2].map(|()| PgStore::open(subject.options(), Handle::current()).stock);
    let (rejected, first_expired, second_expired) = tokio::join!(
        sell_everything(&nodes, &sold),
        expire_all(&stocks[0]),
        expire_all(&stocks[1])
    );
    let (expired_count, sold) = (first_expired + second_expired, sold.into_inner());
    assert!(
        expired_count > 0 && rejected > 0,
        "no contention between expiry and sales"
    );
    assert_eq!(expired_count + sold, STOCK.cast_unsigned());
    assert_eq!(subject.allocations().await.len() as u64, expired_count + sold);
    assert_eq!(stocks[0].expire_batch().await.unwrap().expired, 0);
    subject.remove().await;
}

/// Expires stock repeatedly; returns the number of vouchers taken out of sale.
async fn expire_all(stock: &Stock) -> u64 {
    let mut expired = 0;
    for _ in 0..STOCK {
        expired += stock.expire_batch().await.unwrap().expired;
    }
    expired
}

/// Partners with money, the stock in chunks with these expiries, and the nodes.
async fn prepare(expiries: &[Expiry]) -> (PgSubject, Vec<Arc<PgNode>>) {
    let subject = PgSubject::new().await;
    for number in 1..=PARTNERS {
        subject.add_partner(build::partner(number)).await;
        let wallet = build::usd_wallet(build::partner(number));
        subject.top_up(wallet, build::minor(1_000_000)).await;
    }
    for _ in 0..STOCK / CHUNK {
        subject.add_chunk(&gift(), expiries).await;
    }
    let mut nodes = Vec::new();
    for name in NODES {
        nodes.push(subject.start(name).await);
    }
    (subject, nodes)
}

/// Sells all stock from two lanes of each node; returns the number of rejected records.
async fn sell_everything(nodes: &[Arc<PgNode>], sold: &AtomicU64) -> usize {
    let sellers = nodes
        .iter()
        .flat_map(|node| [0, 1].map(|lane| sell_all(Arc::clone(node), lane, sold)));
    let rejected = futures_util::future::join_all(sellers).await;
    rejected.into_iter().sum()
}

async fn expire_leases(subject: &PgSubject) {
    for name in NODES.iter().cycle() {
        subject.expire_lease(name).await;
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

/// Sells all claimable stock until none is left; returns the number of rejected records.
async fn sell_all(node: Arc<PgNode>, number: u16, sold: &AtomicU64) -> usize {
    let mut lane = node.open_lane(number).await.unwrap();
    let (mut refused, mut batch) = (0, 0);
    loop {
        let claimed = node.claim_stock(stock_request()).await.unwrap();
        if claimed == ClaimedStock::default() {
            return refused;
        }
        for vouchers in claimed_vouchers(&claimed).chunks(5) {
            batch += 1;
            let records = order_records(&node, number, batch, vouchers);
            refused += commit(&mut lane, batch, &records, sold).await;
        }
    }
}

/// Orders of one or two vouchers, with partners in a different sequence per lane; some share a key.
fn order_records(node: &PgNode, lane: u16, batch: i64, vouchers: &[StockVoucher]) -> Vec<Record> {
    let shelve = |(index, held): (u64, &[StockVoucher])| {
        let name = format!("{}/{lane}/{batch}/{index}", node.identity().name);
        let number = (index * u64::from(lane + 1) + batch.cast_unsigned()) % PARTNERS + 1;
        let record = build::delivered_order(build::partner(number), &name, &[(&gift(), held)]);
        if batch % 7 == 0 && index == 0 {
            return build::with_key(&format!("shared {batch}"), record);
        }
        record
    };
    (0..).zip(vouchers.chunks(2)).map(shelve).collect()
}

/// Commits a batch, counts its sold vouchers and returns the number of rejected records. Ordered locking
/// means that no commit is aborted.
async fn commit(lane: &mut Box<dyn LaneStore>, batch: i64, records: &[Record], sold: &AtomicU64) -> usize {
    let verdicts = lane.commit(batch, records).await.unwrap();
    let mut refused = 0;
    for (record, verdict) in records.iter().zip(verdicts) {
        if matches!(verdict, Verdict::Committed(_)) {
            sold.fetch_add(record.voucher_count() as u64, Ordering::Relaxed);
        } else {
            refused += 1;
        }
    }
    refused
}
