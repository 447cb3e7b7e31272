//! Connection classes: readers delay neither orders nor the lease nor the readiness probe.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::future::{join, join_all};
use hyper::Method;
use vouchsafe_store::LEASE_S;
use vouchsafe_test_harness::{
    Instance, Operator, Partner, Sale, ServiceDatabase, WAIT_TIMEOUT, eventually, expect_error,
    expect_success, text_of, unique,
};

const READERS: usize = 24;

/// Each order is the first of its partner and of its SKU: it loads the wallet and claims stock.
const ORDERS: usize = 8;

/// A hundred emptied chunks, their vouchers sold.
const SOLD_STOCK: &str = "
    INSERT INTO chunks (product_id, denomination, first_stock_id, last_stock_id, emptied)
    SELECT product_id, denomination, n * 500 - 1000000, n * 500 - 999501, true
      FROM (SELECT product_id, denomination FROM chunks LIMIT 1) AS sku, generate_series(1, 100) AS n;
    INSERT INTO stock (stock_id, chunk_id, code_id)
    SELECT s, c.chunk_id, s FROM chunks AS c, generate_series(c.first_stock_id, c.last_stock_id) AS s WHERE c.first_stock_id < 0;
    INSERT INTO allocations (stock_id, voucher_id, partner_id, order_id, line)
    SELECT stock_id, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 0 FROM stock WHERE stock_id < 0;
    ANALYZE chunks, stock, allocations";

/// Readers of lists, until they are stopped.
#[derive(Default)]
struct Readers {
    stopped: AtomicBool,
    /// Responses by reader.
    responses: [AtomicUsize; READERS],
}

impl Readers {
    /// Reads the paths in turn. A response is a page, or the documented error of a request without a
    /// connection.
    async fn read_until_stopped(&self, service: &Instance, paths: &[&str]) {
        let readers = self.responses.iter().zip(paths.iter().cycle());
        join_all(readers.map(async |(responses, path)| {
            let mut operator = Operator::of(service);
            while !self.stopped.load(Ordering::SeqCst) {
                let response = operator.call_json(Method::GET, path, "").await;
                if response.status != 200 {
                    expect_error(&response, 503, "SERVICE_UNAVAILABLE");
                    assert_eq!(response.header("retry-after"), Some("1"));
                }
                responses.fetch_add(1, Ordering::SeqCst);
            }
        }))
        .await;
    }

    fn fewest_responses(&self) -> usize {
        let responses = self.responses.iter();
        responses.map(|count| count.load(Ordering::SeqCst)).min().unwrap()
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }
}

/// The node is ready, and more than half of its lease is left.
async fn assert_in_control(operator: &mut Operator, database: &mut ServiceDatabase) {
    let ready = operator.call_json(Method::GET, "/readyz", "").await;
    assert_eq!(ready.status, 200, "{:?}", ready.body);
    let leases = "SELECT count(*) FROM nodes WHERE lease_until > clock_timestamp() + $1::interval";
    let half = format!("{} ms", LEASE_S * 500);
    assert_eq!(
        database.count(leases, &half).await,
        1,
        "the lease is less than half"
    );
}

/// A service with a partner and a product for each order.
async fn start_shop() -> (Instance, Vec<(Partner, Sale)>) {
    let service = Instance::start();
    let mut operator = Operator::of(&service);
    let mut sales = Vec::new();
    for _ in 0..ORDERS {
        let sale = operator.add_stocked_product(2).await;
        sales.push((operator.add_partner("100").await, sale));
    }
    (service, sales)
}

/// Places an order for each partner, and again under its key, while the readers go on. On a slow machine the
/// service may need a second request to decide.
async fn place_orders(sales: &mut [(Partner, Sale)], check: &mut impl AsyncFnMut()) {
    for (partner, sale) in sales {
        let key = unique("key");
        for _ in 0..2 {
            let place = async || {
                let response = partner.order_with_key(&key, sale, 1).await;
                (response.status != 503).then_some(response)
            };
            let placed = eventually("an order to be decided", WAIT_TIMEOUT, place).await;
            expect_success(&placed, 201);
            check().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_blocked_by_a_lock_stop_no_order() {
    let (service, mut sales) = start_shop().await;
    let mut operator = Operator::of(&service);
    let mut database = ServiceDatabase::of(&service).await;
    let mut locking = ServiceDatabase::of(&service).await;
    let readers = Readers::default();
    let paths = ["/admin/v1/drifts", "/admin/v1/audit"];
    let lock = "BEGIN; LOCK TABLE drifts, audit_log IN ACCESS EXCLUSIVE MODE";
    locking.run(lock.to_owned()).await;
    let ordering = async {
        let blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted AND $1 = ''";
        let all_blocked = async || (database.count(blocked, "").await > 3).then_some(());
        eventually("the readers to be blocked", WAIT_TIMEOUT, all_blocked).await;
        place_orders(&mut sales, &mut async || {
            assert_in_control(&mut operator, &mut database).await
        })
        .await;
        // Long enough that each reader was refused, at the lock or for want of a connection.
        let all_refused = async || {
            assert_in_control(&mut operator, &mut database).await;
            (readers.fewest_responses() > 1).then_some(())
        };
        eventually("each reader to be refused", WAIT_TIMEOUT, all_refused).await;
        locking.run("COMMIT".to_owned()).await;
        readers.stop();
    };
    join(ordering, readers.read_until_stopped(&service, &paths)).await;
    let metrics = operator.call_json(Method::GET, "/metrics", "").await;
    let metrics = text_of(&metrics);
    let timeouts: BTreeMap<&str, &str> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("vouchsafe_database_connection_timeouts_total{class=\""))
        .filter_map(|line| line.split_once("\"} "))
        .collect();
    for class in ["lease", "control"] {
        assert_eq!(timeouts[class], "0", "{timeouts:?}");
    }
    assert_ne!(timeouts["operators"], "0", "{timeouts:?}");
    service.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_stock_levels_stop_no_order() {
    let (service, mut sales) = start_shop().await;
    let mut operator = Operator::of(&service);
    let mut database = ServiceDatabase::of(&service).await;
    database.run(SOLD_STOCK.to_owned()).await;
    let uncounted = "SELECT count(*) FROM chunks WHERE emptied AND voided IS NULL AND $1 = ''";
    let counted = async || (database.count(uncounted, "").await == 0).then_some(());
    eventually("the chunks to be counted", WAIT_TIMEOUT, counted).await;
    let readers = Readers::default();
    let ordering = async {
        place_orders(&mut sales, &mut async || {
            assert_in_control(&mut operator, &mut database).await
        })
        .await;
        let all_served = async || (readers.fewest_responses() > 2).then_some(());
        eventually("each reader to be served", WAIT_TIMEOUT, all_served).await;
        assert_in_control(&mut operator, &mut database).await;
        readers.stop();
    };
    join(
        ordering,
        readers.read_until_stopped(&service, &["/admin/v1/stock"]),
    )
    .await;
}
