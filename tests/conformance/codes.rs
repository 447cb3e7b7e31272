//! Concurrent code retrievals, and retrievals during changes to the orders.

use std::sync::Arc;

use futures_util::future::join_all;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::store_error::Unavailable;
use vouchsafe_domain::voucher::StockVoucher;
use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::{
    CaseFixture as _, Fixture, OtherTransaction as _, Subject, assert_committed,
};
use vouchsafe_store::{PgNode, RetrievalOutcome};

use crate::subject::PgSubject;

const RETRIEVAL_COUNT: &str =
    "SELECT count(*) FROM audit_log WHERE action = 'codes.retrieve' AND (after ->> 'vouchers')::integer > 0";

/// A partner's orders with their vouchers; an order without vouchers waits for its vendor.
pub(crate) struct PartnerOrders {
    pub(crate) partner: PartnerId,
    pub(crate) node: Arc<PgNode>,
    pub(crate) orders: Vec<(OrderId, Vec<StockVoucher>)>,
}

impl PartnerOrders {
    pub(crate) async fn create(subject: &PgSubject, sizes: &[usize]) -> Self {
        let mut fixture = Fixture::create(subject).await;
        let (partner, wallet) = (fixture.partner, fixture.wallet());
        subject.top_up(wallet, build::minor(10_000_000)).await;
        let vouchers = i64::try_from(sizes.iter().sum::<usize>()).unwrap();
        let mut stock = fixture.add_stock(vouchers).await.into_iter();
        let (mut records, mut orders) = (Vec::new(), Vec::new());
        for (index, size) in sizes.iter().enumerate() {
            let name = format!("order {index}");
            let vouchers: Vec<StockVoucher> = stock.by_ref().take(*size).collect();
            records.push(match vouchers.as_slice() {
                [] => fixture.pending_order(&name, 100),
                vouchers => fixture.delivered_order(&name, vouchers),
            });
            orders.push((build::order_id(&name), vouchers));
        }
        assert_committed(&fixture.commit(&records).await);
        Self {
            partner,
            node: subject.newest_node(),
            orders,
        }
    }

    /// Retrieves the codes of all orders concurrently.
    async fn retrieve_all(&self, subject: &PgSubject) -> Vec<Result<RetrievalOutcome, Unavailable>> {
        let mut requests = Vec::new();
        for (order_id, _) in &self.orders {
            requests.push(subject.retrieval(self.partner, *order_id).await);
        }
        let retrievals = requests.into_iter();
        join_all(retrievals.map(|request| self.node.retrieve_codes(request))).await
    }
}

async fn count(subject: &PgSubject, query: &'static str) -> i64 {
    sqlx::query_scalar(query).fetch_one(subject.pool()).await.unwrap()
}

/// Each retrieval returns its own order's vouchers and is logged once.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_retrievals_return_their_own_vouchers() {
    let subject = PgSubject::new().await;
    let sizes: Vec<usize> = (0..30).map(|order| order % 4).collect();
    let fixture = PartnerOrders::create(&subject, &sizes).await;
    let other_partner = build::partner(2);
    subject.add_partner(other_partner).await;
    let mut requests = Vec::new();
    for (order_id, held) in &fixture.orders {
        // Twice by the owner, and once by another partner.
        for reader in [fixture.partner, other_partner, fixture.partner] {
            let expected = (reader == fixture.partner).then_some(held);
            requests.push((subject.retrieval(reader, *order_id).await, expected));
        }
    }
    let retrievals = requests
        .iter()
        .map(|(retrieval, _)| fixture.node.retrieve_codes(retrieval.clone()));
    for (retrieved, (retrieval, expected)) in join_all(retrievals).await.into_iter().zip(&requests) {
        match (retrieved.unwrap(), expected) {
            (RetrievalOutcome::NotFound, None) => {}
            (RetrievalOutcome::NotReady, Some(held)) if held.is_empty() => {}
            (RetrievalOutcome::Vouchers(vouchers), Some(held)) => {
                let read: Vec<i64> = vouchers.iter().map(|voucher| voucher.code_id.0).collect();
                assert_eq!(read, code_ids_of(&subject, held).await, "{retrieval:?}");
            }
            other => panic!("{retrieval:?}: {other:?}"),
        }
    }
    let read = fixture.orders.iter().filter(|(_, held)| !held.is_empty()).count();
    let twice = i64::try_from(2 * read).unwrap();
    assert_eq!(count(&subject, RETRIEVAL_COUNT).await, twice);
    let commits = "SELECT count(DISTINCT xmin::text) FROM audit_log WHERE action = 'codes.retrieve'";
    let commits = count(&subject, commits).await;
    assert!(commits < twice / 2, "{twice} retrievals in {commits} commits");
    assert_eq!(subject.violations().await, Vec::<String>::new());
    subject.remove().await;
}

/// Retrievals that exceed the batch limit run alone; small ones do not wait for them.
#[tokio::test(flavor = "multi_thread")]
async fn large_retrievals_run_alone() {
    let subject = PgSubject::new().await;
    let fixture = PartnerOrders::create(&subject, &[1_000, 1_000, 1, 1_000, 1_000, 1_000, 2]).await;
    let retrievals = fixture.retrieve_all(&subject).await;
    for (retrieved, (_, held)) in retrievals.into_iter().zip(&fixture.orders) {
        match retrieved.unwrap() {
            RetrievalOutcome::Vouchers(vouchers) => assert_eq!(vouchers.len(), held.len()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(count(&subject, RETRIEVAL_COUNT).await, 7);
    subject.remove().await;
}

async fn code_ids_of(subject: &PgSubject, held: &[StockVoucher]) -> Vec<i64> {
    let stock: Vec<i64> = held.iter().map(|voucher| voucher.stock_id.0).collect();
    sqlx::query_scalar("SELECT code_id FROM stock WHERE stock_id = ANY ($1) ORDER BY stock_id")
        .bind(stock)
        .fetch_all(subject.pool())
        .await
        .unwrap()
}

/// A cancellation locks the order, and the retrieval waits for it: of the whole order or of a part.
#[tokio::test(flavor = "multi_thread")]
async fn retrieval_blocked_by_cancellation_sees_returned_vouchers() {
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
        let fixture = PartnerOrders::create(&subject, &[2, 1]).await;
        let (order_id, _) = fixture.orders[0];
        let transaction = subject
            .begin_with(sqlx::query(cancelling).bind(order_id.as_uuid()))
            .await;
        let retrievals = fixture.retrieve_all(&subject);
        let ended = async {
            subject.wait_for_blocked(1).await;
            match returned {
                true => transaction.commit().await,
                false => transaction.rollback().await,
            }
        };
        let (read, ()) = tokio::join!(retrievals, ended);
        let [first, second] = read.try_into().unwrap();
        match (first.unwrap(), left) {
            (RetrievalOutcome::NotReady, 0) => {}
            (RetrievalOutcome::Vouchers(vouchers), left) => assert_eq!(vouchers.len(), left),
            other => panic!("{other:?}"),
        }
        assert!(matches!(second.unwrap(), RetrievalOutcome::Vouchers(_)));
        let read = if left == 0 { 1 } else { 2 };
        assert_eq!(count(&subject, RETRIEVAL_COUNT).await, read);
        subject.remove().await;
    }
}

/// One failing retrieval does not affect the others in its batch, and none is logged twice.
#[tokio::test(flavor = "multi_thread")]
async fn failing_retrieval_fails_alone() {
    let subject = PgSubject::new().await;
    let fixture = PartnerOrders::create(&subject, &[1; 40]).await;
    let damage = "UPDATE codes SET product_id = '' WHERE code_id = (SELECT min(code_id) FROM codes)";
    sqlx::query(damage).execute(subject.pool()).await.unwrap();
    let retrievals = fixture.retrieve_all(&subject).await;
    let mut failed = Vec::new();
    for (retrieved, index) in retrievals.into_iter().zip(0..) {
        match retrieved {
            Ok(retrieved) => assert!(
                matches!(retrieved, RetrievalOutcome::Vouchers(_)),
                "{index}: {retrieved:?}"
            ),
            Err(_) => failed.push(index),
        }
    }
    assert_eq!(failed, [0]);
    assert_eq!(count(&subject, RETRIEVAL_COUNT).await, 40);
    subject.remove().await;
}

/// An order locked for longer than the lock timeout does not affect the others.
#[tokio::test(flavor = "multi_thread")]
async fn retrieval_blocked_past_lock_timeout_fails_alone() {
    let subject = PgSubject::new().await;
    let fixture = PartnerOrders::create(&subject, &[1; 10]).await;
    let lock_query = sqlx::query("SELECT FROM orders WHERE order_id = $1 FOR UPDATE");
    let transaction = subject
        .begin_with(lock_query.bind(fixture.orders[4].0.as_uuid()))
        .await;
    let retrievals = fixture.retrieve_all(&subject).await;
    let failed: Vec<usize> = retrievals
        .into_iter()
        .enumerate()
        .filter_map(|(index, retrieved)| retrieved.is_err().then_some(index))
        .collect();
    assert_eq!(failed, [4]);
    transaction.rollback().await;
    let again = subject.retrieval(fixture.partner, fixture.orders[4].0).await;
    let again = fixture.node.retrieve_codes(again).await.unwrap();
    assert!(matches!(again, RetrievalOutcome::Vouchers(_)));
    assert_eq!(count(&subject, RETRIEVAL_COUNT).await, 10);
    subject.remove().await;
}
