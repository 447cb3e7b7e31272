//! Codes of orders that are read at once, and beside whoever changes those orders.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use vouchsafe::store::{PgNode, Retrieved};
use vouchsafe_actors::domain::ids::{OrderId, PartnerId};
use vouchsafe_actors::domain::stock::StockRequest;
use vouchsafe_actors::domain::voucher::Shelved;
use vouchsafe_actors::journal::{Record, Verdict};
use vouchsafe_actors::store::Store;
use vouchsafe_actors::testing::build;
use vouchsafe_actors::testing::conformance::{OtherTransaction as _, Subject};

use crate::subject::PgSubject;

const TRAIL: &str = "SELECT count(*) FROM code_retrievals WHERE vouchers > 0";

const SHOWN: &str = "SELECT count(*) FROM audit_log WHERE action = 'codes.retrieve'";

/// A partner's orders, which hold so many vouchers each; one of none waits for its vendor.
pub(crate) struct Shop {
    pub(crate) partner: PartnerId,
    pub(crate) node: Arc<PgNode>,
    pub(crate) orders: Vec<(OrderId, Vec<Shelved>)>,
}

impl Shop {
    pub(crate) async fn open(subject: &PgSubject, sizes: &[usize]) -> Self {
        let partner = build::partner(1);
        subject.add_partner(partner).await;
        subject
            .top_up(build::usd_of(partner), build::minor(1_000_000))
            .await;
        let node = subject.start("one").await;
        let mut lane = node.open_lane(0).await.unwrap();
        let gift = build::sku("gift", 100);
        let days = vec![build::day(100); sizes.iter().sum()];
        let mut stock = subject.add_chunk(&gift, &days).await.into_iter();
        let claim = StockRequest {
            sku: gift.clone(),
            loaded: Vec::new(),
            enough: 1,
            not_before: build::day(0),
        };
        // So that it can be sold.
        node.claim_stock(claim).await.unwrap();
        let (mut records, mut held) = (Vec::<Record>::new(), Vec::new());
        for (place, size) in sizes.iter().enumerate() {
            let name = format!("order {place}");
            let vouchers: Vec<Shelved> = stock.by_ref().take(*size).collect();
            records.push(match vouchers.as_slice() {
                [] => build::pending(partner, &name, 100),
                vouchers => build::delivered(partner, &name, &[(&gift, vouchers)]),
            });
            held.push(vouchers);
        }
        let verdicts = lane.commit(1, &records).await.unwrap();
        for verdict in &verdicts {
            assert!(matches!(verdict, Verdict::Committed(_)), "{verdict:?}");
        }
        let ids = records
            .iter()
            .map(|record| record.order.as_ref().unwrap().order_id);
        Self {
            partner,
            node,
            orders: ids.zip(held).collect(),
        }
    }
}

async fn count(subject: &PgSubject, query: &'static str) -> i64 {
    sqlx::query_scalar(query).fetch_one(subject.pool()).await.unwrap()
}

/// Each is answered what its own order holds, and is on both trails once.
#[tokio::test(flavor = "multi_thread")]
async fn readings_that_come_at_once_are_answered_each_with_its_own() {
    let subject = PgSubject::new().await;
    let sizes: Vec<usize> = (0..30).map(|order| order % 4).collect();
    let shop = Shop::open(&subject, &sizes).await;
    let stranger = build::partner(2);
    subject.add_partner(stranger).await;
    let mut asked = Vec::new();
    for (order_id, held) in &shop.orders {
        // Twice, and by somebody whose it is not.
        for reader in [shop.partner, stranger, shop.partner] {
            let expected = (reader == shop.partner).then_some(held);
            asked.push((subject.retrieval(reader, *order_id).await, expected));
        }
    }
    let readings = asked
        .iter()
        .map(|(retrieval, _)| shop.node.retrieve_codes(retrieval.clone()));
    for (retrieved, (retrieval, expected)) in join_all(readings).await.into_iter().zip(&asked) {
        match (retrieved.unwrap(), expected) {
            (Retrieved::NotFound, None) => {}
            (Retrieved::NotReady, Some(held)) if held.is_empty() => {}
            (Retrieved::Vouchers(vouchers), Some(held)) => {
                let read: Vec<i64> = vouchers.iter().map(|voucher| voucher.code_id.0).collect();
                assert_eq!(read, codes_of(&subject, held).await, "{retrieval:?}");
            }
            other => panic!("{retrieval:?}: {other:?}"),
        }
    }
    let read = shop.orders.iter().filter(|(_, held)| !held.is_empty()).count();
    let twice = i64::try_from(2 * read).unwrap();
    assert_eq!(
        (count(&subject, TRAIL).await, count(&subject, SHOWN).await),
        (twice, twice)
    );
    let commits = "SELECT count(DISTINCT xmin::text) FROM code_retrievals";
    let commits = count(&subject, commits).await;
    assert!(commits < twice / 2, "{twice} readings in {commits} commits");
    assert_eq!(subject.violations().await, Vec::<String>::new());
    subject.remove().await;
}

/// More vouchers than are read at once are read by and by, and small readings do not wait for them.
#[tokio::test(flavor = "multi_thread")]
async fn large_readings_go_by_themselves() {
    let subject = PgSubject::new().await;
    let shop = Shop::open(&subject, &[1_000, 1_000, 1, 1_000, 1_000, 1_000, 2]).await;
    let mut asked = Vec::new();
    for (order_id, _) in &shop.orders {
        asked.push(subject.retrieval(shop.partner, *order_id).await);
    }
    let readings = asked.into_iter().map(|asked| shop.node.retrieve_codes(asked));
    for (retrieved, (_, held)) in join_all(readings).await.into_iter().zip(&shop.orders) {
        match retrieved.unwrap() {
            Retrieved::Vouchers(vouchers) => assert_eq!(vouchers.len(), held.len()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(count(&subject, TRAIL).await, 7);
    subject.remove().await;
}

async fn codes_of(subject: &PgSubject, held: &[Shelved]) -> Vec<i64> {
    let stock: Vec<i64> = held.iter().map(|voucher| voucher.stock_id.0).collect();
    sqlx::query_scalar("SELECT code_id FROM stock WHERE stock_id = ANY ($1) ORDER BY stock_id")
        .bind(stock)
        .fetch_all(subject.pool())
        .await
        .unwrap()
}

/// Whoever returns vouchers holds their order, and a reading waits for the end of that: the whole was cancelled, or a part.
#[tokio::test(flavor = "multi_thread")]
async fn a_reading_sees_what_was_returned_while_it_waited() {
    const WHOLE: &str = "WITH cancelled AS (
            UPDATE orders SET status = 'REFUNDED', closed = true WHERE order_id = $1
         )
         UPDATE allocations SET returned_at = now() WHERE order_id = $1";
    const PART: &str = "WITH cancelled AS (
            UPDATE orders SET updated_at = now() WHERE order_id = $1
         )
         UPDATE allocations SET returned_at = now()
          WHERE stock_id = (SELECT min(stock_id) FROM allocations WHERE order_id = $1)";
    for (cancelling, returned, left) in [(WHOLE, true, 0), (WHOLE, false, 2), (PART, true, 1)] {
        let subject = PgSubject::new().await;
        let shop = Shop::open(&subject, &[2, 1]).await;
        let (order_id, _) = shop.orders[0];
        let other = subject
            .open(sqlx::query(cancelling).bind(order_id.as_uuid()))
            .await;
        let mut asked = Vec::new();
        for (order_id, _) in &shop.orders {
            asked.push(subject.retrieval(shop.partner, *order_id).await);
        }
        let readings = join_all(asked.into_iter().map(|asked| shop.node.retrieve_codes(asked)));
        let ended = async {
            subject.until_waiting(1).await;
            match returned {
                true => other.commit().await,
                false => other.rollback().await,
            }
        };
        let (read, ()) = tokio::join!(readings, ended);
        let [first, second] = read.try_into().unwrap();
        match (first.unwrap(), left) {
            (Retrieved::NotReady, 0) => {}
            (Retrieved::Vouchers(vouchers), left) => assert_eq!(vouchers.len(), left),
            other => panic!("{other:?}"),
        }
        assert!(matches!(second.unwrap(), Retrieved::Vouchers(_)));
        let read = if left == 0 { 1 } else { 2 };
        assert_eq!(count(&subject, TRAIL).await, read);
        subject.remove().await;
    }
}

/// What cannot be read of one order is no trouble of those that were asked for with it, and nobody is on the trail twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_reading_that_fails_fails_alone() {
    let subject = PgSubject::new().await;
    let shop = Shop::open(&subject, &[1; 40]).await;
    let damaged = "UPDATE codes SET product_id = '' WHERE code_id = (SELECT min(code_id) FROM codes)";
    sqlx::query(damaged).execute(subject.pool()).await.unwrap();
    let mut asked = Vec::new();
    for (order_id, _) in &shop.orders {
        asked.push(subject.retrieval(shop.partner, *order_id).await);
    }
    let readings = asked.into_iter().map(|asked| shop.node.retrieve_codes(asked));
    let mut failed = Vec::new();
    for (retrieved, place) in join_all(readings).await.into_iter().zip(0..) {
        match retrieved {
            Ok(retrieved) => assert!(
                matches!(retrieved, Retrieved::Vouchers(_)),
                "{place}: {retrieved:?}"
            ),
            Err(_) => failed.push(place),
        }
    }
    assert_eq!(failed, [0]);
    assert_eq!(count(&subject, TRAIL).await, 40);
    subject.remove().await;
}

/// An order that somebody stands on for longer than a statement may wait is no trouble of the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_reading_that_waits_too_long_fails_alone() {
    let subject = PgSubject::new().await;
    let shop = Shop::open(&subject, &[1; 10]).await;
    let standing = sqlx::query("SELECT FROM orders WHERE order_id = $1 FOR UPDATE");
    let other = subject.open(standing.bind(shop.orders[4].0.as_uuid())).await;
    let mut asked = Vec::new();
    for (order_id, _) in &shop.orders {
        asked.push(subject.retrieval(shop.partner, *order_id).await);
    }
    let readings = asked.into_iter().map(|asked| shop.node.retrieve_codes(asked));
    let failed: Vec<usize> = join_all(readings)
        .await
        .into_iter()
        .enumerate()
        .filter_map(|(place, retrieved)| retrieved.is_err().then_some(place))
        .collect();
    assert_eq!(failed, [4]);
    other.rollback().await;
    let again = subject.retrieval(shop.partner, shop.orders[4].0).await;
    let again = tokio::time::timeout(Duration::from_secs(10), shop.node.retrieve_codes(again));
    assert!(matches!(again.await.unwrap().unwrap(), Retrieved::Vouchers(_)));
    assert_eq!(count(&subject, TRAIL).await, 10);
    subject.remove().await;
}
