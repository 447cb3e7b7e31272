//! Two nodes on one database, their clients and their stock.

use std::sync::Arc;

use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use tokio::task::JoinSet;
use vouchsafe_test_harness::Instance;

use crate::checks::check_everything;
use crate::client::{Client, OrderMix};
use crate::fixtures::{HOT, OTHERS, TestProduct, crash_instance, order_body, seed_service};
use crate::load_session::{LoadSession, OrderRequest, Request};
use crate::operator::Operator;
use crate::resolution::{read_back, replay_unresolved, send_until_definite};
use crate::rng::Rng;

const MASTER_KEY: (&str, &str) = (
    "VOUCHSAFE_MASTER_KEY",
    "5f1c0b7d9e3a48264b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f901a2b",
);

/// The second partner runs out of money on both nodes at once. USD.
const OPENING_BALANCES: [u32; 2] = [10_000_000, 3_000];

/// Per node.
const CLIENTS: u32 = 6;

/// Vouchers per node and product, sixteen chunks: more than a fast program sells before the nodes are
/// suspended or killed.
pub(super) const OWN_STOCK: u64 = 8_000;

/// Outcome of a large order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sale {
    Delivered,
    /// 503: the other node owns the stock.
    Unavailable,
    SoldOut,
}

/// The first node runs the server of both, so the second is the one to kill.
pub(super) struct NodePair {
    pub(super) first: Instance,
    pub(super) second: Instance,
    pub(super) session: Arc<LoadSession>,
    pub(super) database: PgConnection,
    pub(super) rng: Rng,
}

impl NodePair {
    pub(super) async fn start(directory: &std::path::Path, seed: u64) -> Self {
        let mut first = crash_instance(&directory.join("first"), &[MASTER_KEY]);
        first.restart();
        let buyers = seed_service(&first, &OPENING_BALANCES).await;
        let options = vouchsafe_private_postgres::find_running(first.data_dir()).unwrap();
        let url = options.to_url_lossy();
        let mut second = crash_instance(
            &directory.join("second"),
            &[MASTER_KEY, ("DATABASE_URL", url.as_str())],
        );
        second.restart();
        let session = Arc::new(LoadSession::new(buyers, &directory.join("history.jsonl")));
        let database = PgConnection::connect_with(&options).await.unwrap();
        let pair = Self {
            first,
            second,
            session,
            database,
            rng: Rng::new(seed),
        };
        for (node, name) in [(&pair.first, "first"), (&pair.second, "second")] {
            for product in [HOT, OTHERS[0]] {
                Operator::of(node).import_stock(&product, name, OWN_STOCK).await;
                pair.place_order(node, &format!("claim-{name}-{}", product.product_id), product, 1)
                    .await;
            }
        }
        pair
    }

    pub(super) async fn place_order(&self, node: &Instance, key: &str, product: TestProduct, quantity: u64) {
        let order = OrderRequest {
            buyer: 0,
            key: key.to_owned(),
            body: order_body(&[(product, quantity)]),
        };
        let mut client = self.session.buyers[0].client(&node.base_url());
        let response = send_until_definite(&self.session, 0, &mut client, &Request::Order(order)).await;
        assert_eq!(
            response.status.as_u16(),
            201,
            "{key}: {}",
            String::from_utf8_lossy(&response.body)
        );
    }

    pub(super) fn start_load(&mut self) -> JoinSet<()> {
        self.session.set_running(true);
        let mut load = JoinSet::new();
        for proc in 0..2 * CLIENTS {
            // Partners alternate with each number, nodes with every second one.
            let node = if proc / 2 % 2 == 0 {
                &self.first
            } else {
                &self.second
            };
            let client = Client::new(
                &self.session,
                proc,
                &node.base_url(),
                OrderMix::OneStockedProduct,
                self.rng.fork(),
            );
            load.spawn(client.run());
        }
        load
    }

    pub(super) async fn stop_load(&self, load: JoinSet<()>) {
        self.session.set_running(false);
        load.join_all().await;
    }

    /// Counts the commits that were rejected for a stale balance since the nodes started.
    pub(super) async fn count_stale_balances(&self) -> u64 {
        let line = r#"vouchsafe_journal_verdicts_total{verdict="stale_balance"}"#;
        Operator::of(&self.first).metric(line).await + Operator::of(&self.second).metric(line).await
    }

    /// Counts the non-empty chunks of the hot SKU that the first and the second node own.
    pub(super) async fn owned_chunks(&mut self) -> (i64, i64) {
        let names = [&self.first, &self.second].map(|node| {
            let name = std::fs::read_to_string(node.data_dir().join("node")).unwrap();
            name.trim().to_owned()
        });
        let [first, second] = names;
        sqlx::query_as(
            "SELECT count(*) FILTER (WHERE c.node = $1), count(*) FILTER (WHERE c.node = $2)
               FROM chunks AS c
              WHERE c.product_id = 'hot'
                AND EXISTS (
                    SELECT
                      FROM stock AS s
                     WHERE s.stock_id BETWEEN c.first_stock_id AND c.last_stock_id
                       AND NOT EXISTS (SELECT FROM allocations AS a WHERE a.stock_id = s.stock_id)
                    )",
        )
        .bind(first)
        .bind(second)
        .fetch_one(&mut self.database)
        .await
        .unwrap()
    }

    /// Counts the free vouchers of the hot SKU.
    pub(super) async fn count_free(&mut self) -> i64 {
        sqlx::query_scalar(
            "SELECT count(*)
               FROM chunks AS c
               JOIN stock AS s USING (chunk_id)
              WHERE c.product_id = 'hot'
                AND NOT EXISTS (SELECT FROM allocations AS a WHERE a.stock_id = s.stock_id)",
        )
        .fetch_one(&mut self.database)
        .await
        .unwrap()
    }

    /// Places an order at one node. If it is sold out, both nodes must be.
    pub(super) async fn buy(&mut self, of_first: bool, key: String, quantity: u64) -> Sale {
        let node = if of_first { &self.first } else { &self.second };
        let order = OrderRequest {
            buyer: 0,
            key,
            body: order_body(&[(HOT, quantity)]),
        };
        let mut client = self.session.buyers[0].client(&node.base_url());
        let outcome = self
            .session
            .send_recorded(0, &mut client, &Request::Order(order), None)
            .await;
        match outcome.unwrap().status.as_u16() {
            201 => Sale::Delivered,
            503 => Sale::Unavailable,
            409 => {
                let free = self.count_free().await;
                assert!(
                    free < quantity.cast_signed(),
                    "sold out, but {free} vouchers are free"
                );
                Sale::SoldOut
            }
            status => panic!("unexpected status {status}"),
        }
    }

    pub(super) async fn finish(mut self) {
        Operator::of(&self.first)
            .import_stock(&HOT, "last", OWN_STOCK)
            .await;
        let replays = replay_unresolved(&self.session, &self.first.base_url()).await;
        let acknowledged = self.session.acknowledged_orders();
        let (half, other) = acknowledged.split_at(acknowledged.len() / 2);
        read_back(&self.session, &self.first.base_url(), other).await;
        read_back(&self.session, &self.second.base_url(), half).await;
        check_everything(&self.session, &mut self.database).await;
        self.first.assert_verified();
        println!(
            "{} orders on two nodes, {replays:?}; {} rejected for a stale balance",
            acknowledged.len(),
            self.count_stale_balances().await
        );
        assert_eq!(self.second.stop(), Some(0), "{}", self.second.log_tail());
        drop(self.database);
        assert_eq!(self.first.stop(), Some(0), "{}", self.first.log_tail());
    }
}
