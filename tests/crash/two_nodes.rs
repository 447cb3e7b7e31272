//! Two nodes on one database. A killed node's stock is sold by the other, and no acknowledged order is lost.
//!
//! A suspended node must sell nothing that the other took over, and sells again when it runs:
//!
//! | step | the first node | the second node |
//! |---|---|---|
//! | each imports and claims its own stock | sells | sells to the same partners, from the same wallets |
//! | SIGSTOP until its stock is taken over | suspended with orders in flight | settles those, takes over its chunks, sells from them |
//! | SIGCONT | its commits with lost chunks are rejected; sells what the other releases | releases what it does not need |
//! | it imports new stock | sells | sells |

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use tokio::task::JoinSet;
use vouchsafe_api_client::RequestFailure;

use crate::checks::check_everything;
use crate::client::{Client, OrderMix};
use crate::fixtures::{HOT, OTHERS, TestProduct, order_body, seed_service};
use crate::load_session::{LoadSession, OrderRequest, Request};
use crate::operator::Operator;
use vouchsafe_test_harness::Instance;
use vouchsafe_test_harness::send_signal;

use crate::fixtures::{crash_instance, test_directory};
use crate::resolution::{read_back, replay_unresolved, send_until_definite};
use crate::rng::Rng;
use crate::rounds::{SeedOnPanic, env_number};
use crate::{lock_test_turn, run};

const MASTER_KEY: (&str, &str) = (
    "VOUCHSAFE_MASTER_KEY",
    "5f1c0b7d9e3a48264b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f901a2b",
);

/// The second partner runs out of money on both nodes at once. USD.
const OPENING_BALANCES: [u32; 2] = [10_000_000, 3_000];

/// Per node.
const CLIENTS: u32 = 6;

/// Vouchers per node and product: four chunks.
const OWN_STOCK: u64 = 2_000;

/// Vouchers of an order that makes its node take over stock: several chunks, so that a takeover of all stock is short.
const LARGE_ORDER: u64 = 500;

/// Each takeover follows a demand of 600 ms; the lease expires after 15 s.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(60);

/// Vouchers of an order that sells what large orders leave.
const SMALL_ORDER: u64 = 20;

/// Orders at a node that was suspended.
const WAKING_ORDERS: u64 = 10;

/// How often the listener updates its clock.
const CLOCK_UPDATE: Duration = Duration::from_millis(500);

/// Kills of the second node; `VOUCHSAFE_CRASH_ROUNDS` overrides it.
const KILLS: u64 = 3;

/// Outcome of a large order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sale {
    Delivered,
    /// 503: the other node owns the stock.
    Unavailable,
    SoldOut,
}

/// The first node runs the server of both, so the second is the one to kill.
struct NodePair {
    first: Instance,
    second: Instance,
    session: Arc<LoadSession>,
    database: PgConnection,
    rng: Rng,
}

#[test]
fn suspended_node_sells_no_taken_stock() {
    let _turn = lock_test_turn();
    run(async {
        let directory = test_directory();
        let mut pair = NodePair::start(directory.path(), 7).await;
        pair.run_load_for(Duration::from_millis(1_500)).await;
        pair.suspend_until_taken_over().await;
        pair.wake_up().await;
        pair.recover().await;
        pair.run_load_for(Duration::from_millis(1_000)).await;
        let stale_balances = pair.finish().await;
        assert!(stale_balances > 0, "the nodes must compete for one wallet");
    });
}

#[test]
fn orders_of_a_killed_node_survive_and_its_stock_is_sold_by_the_other() {
    let _turn = lock_test_turn();
    let seed = env_number("VOUCHSAFE_CRASH_SEED").unwrap_or_else(|| getrandom::u64().unwrap());
    let kills = env_number("VOUCHSAFE_CRASH_ROUNDS").unwrap_or(KILLS);
    println!("VOUCHSAFE_CRASH_SEED={seed} VOUCHSAFE_CRASH_ROUNDS={kills}");
    run(async {
        let directory = test_directory();
        let mut pair = NodePair::start(directory.path(), seed).await;
        for round in 1..=kills {
            let _context = SeedOnPanic { seed, round };
            pair.kill_and_restart(round).await;
        }
        let _ = pair.finish().await;
    });
}

impl NodePair {
    async fn start(directory: &std::path::Path, seed: u64) -> Self {
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

    async fn place_order(&self, node: &Instance, key: &str, product: TestProduct, quantity: u64) {
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

    fn start_load(&mut self) -> JoinSet<()> {
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

    async fn run_load_for(&mut self, duration: Duration) {
        let load = self.start_load();
        tokio::time::sleep(duration).await;
        self.session.set_running(false);
        load.join_all().await;
    }

    /// Counts the non-empty chunks of the hot SKU that the first and the second node own.
    async fn owned_chunks(&mut self) -> (i64, i64) {
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
    async fn count_free(&mut self) -> i64 {
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

    /// Suspends the first node with orders in flight; the second settles them and takes over its stock.
    async fn suspend_until_taken_over(&mut self) {
        let (first, second) = self.owned_chunks().await;
        assert!(
            first > 0 && second > 0,
            "each node must own stock: {first}, {second}"
        );
        let load = self.start_load();
        tokio::time::sleep(Duration::from_millis(200)).await;
        send_signal(self.first.pid(), Signal::STOP);
        let started = Instant::now();
        tokio::time::sleep(Duration::from_millis(500)).await;
        self.session.set_running(false);
        load.join_all().await;
        let mut number = 0;
        while self.owned_chunks().await.0 > 0 {
            assert!(
                started.elapsed() < TAKEOVER_TIMEOUT,
                "the suspended node's stock was not taken over"
            );
            let key = format!("out-{number}");
            assert_ne!(self.buy(false, key, LARGE_ORDER).await, Sale::SoldOut);
            number += 1;
        }
        println!(
            "stock taken over {} ms after SIGSTOP",
            started.elapsed().as_millis()
        );
        let replays = replay_unresolved(&self.session, &self.second.base_url()).await;
        println!("orders in flight at the suspended node, resolved at the other: {replays:?}");
        assert!(
            self.owned_chunks().await.1 > 0,
            "some of the taken stock must be left to sell"
        );
    }

    /// Places an order at one node. If it is sold out, both nodes must be.
    async fn buy(&mut self, of_first: bool, key: String, quantity: u64) -> Sale {
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

    /// Kills the second node at a random time under load; the first sells its stock, and every order of it is resolved there.
    async fn kill_and_restart(&mut self, round: u64) {
        for (node, name) in [(&self.first, "first"), (&self.second, "second")] {
            Operator::of(node)
                .import_stock(&HOT, &format!("{name}-{round}"), OWN_STOCK)
                .await;
            self.place_order(node, &format!("claim-{name}-{round}"), HOT, 1)
                .await;
        }
        let load = self.start_load();
        let until_kill = self.rng.between(100, 1_500);
        tokio::time::sleep(Duration::from_millis(until_kill)).await;
        self.second.kill();
        let killed = Instant::now();
        tokio::time::sleep(Duration::from_millis(500)).await;
        self.session.set_running(false);
        load.join_all().await;
        let left = self.owned_chunks().await.1;
        let longest_gap = self.sell_out(round).await;
        println!(
            "round {round}: the killed node left {left} chunks; all stock sold {} ms after kill -9, at most {} ms between sales",
            killed.elapsed().as_millis(),
            longest_gap.as_millis()
        );
        let replays = replay_unresolved(&self.session, &self.first.base_url()).await;
        println!("round {round}: orders in flight at the killed node, resolved at the other: {replays:?}");
        let acknowledged = self.session.acknowledged_orders();
        read_back(&self.session, &self.first.base_url(), &acknowledged).await;
        check_everything(&self.session, &mut self.database).await;
        self.second.restart();
    }

    /// Sells the stock at the first node but for less than a small order. Returns the longest time between two sales.
    async fn sell_out(&mut self, round: u64) -> Duration {
        let mut last_sale = Instant::now();
        let mut longest_gap = Duration::ZERO;
        let mut quantity = LARGE_ORDER;
        for number in 0.. {
            match self.buy(true, format!("out-{round}-{number}"), quantity).await {
                Sale::Delivered => {
                    longest_gap = longest_gap.max(last_sale.elapsed());
                    last_sale = Instant::now();
                }
                Sale::Unavailable => assert!(
                    last_sale.elapsed() < TAKEOVER_TIMEOUT,
                    "the killed node's stock was not taken over"
                ),
                Sale::SoldOut if quantity == LARGE_ORDER => quantity = SMALL_ORDER,
                Sale::SoldOut => break,
            }
        }
        longest_gap
    }

    /// Resumes the first node, which has lost its chunks and demands stock of the second.
    async fn wake_up(&mut self) {
        send_signal(self.first.pid(), Signal::CONT);
        let mut client = self.session.buyers[0].client(&self.first.base_url());
        let mut statuses = Vec::new();
        for number in 0..WAKING_ORDERS {
            let order = Request::Order(OrderRequest {
                buyer: 0,
                key: format!("woken-{number}"),
                body: order_body(&[(HOT, 1)]),
            });
            let status = loop {
                let outcome = self.session.send_recorded(0, &mut client, &order, None).await;
                match outcome.map(|response| response.status.as_u16()) {
                    // Until the listener's clock is set again, it times out request heads and closes their connections.
                    Err(RequestFailure::NotSent(_)) | Ok(408) => tokio::time::sleep(CLOCK_UPDATE).await,
                    status => break status.unwrap(),
                }
            };
            assert!([201, 503].contains(&status), "the other node has stock: {status}");
            statuses.push(status);
        }
        let rejected = Operator::of(&self.first)
            .metric(r#"vouchsafe_journal_verdicts_total{verdict="stale_stock"}"#)
            .await;
        println!("commits rejected after SIGCONT: {rejected}, orders: {statuses:?}");
        assert!(rejected > 0, "commits with lost chunks must be rejected");
    }

    /// Imports new stock at the first node, which sells again.
    async fn recover(&mut self) {
        Operator::of(&self.first)
            .import_stock(&HOT, "fresh", OWN_STOCK)
            .await;
        let started = Instant::now();
        self.place_order(&self.first, "recovered", HOT, 1).await;
        println!("sells again {} ms after an import", started.elapsed().as_millis());
        // Orders that wait at it for the other product need stock too.
        Operator::of(&self.first)
            .import_stock(&OTHERS[0], "fresh", OWN_STOCK)
            .await;
    }

    /// Returns the number of commits that were rejected for a stale balance since the nodes started.
    async fn finish(mut self) -> u64 {
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
        let mut stale_balances = 0;
        for node in [&self.first, &self.second] {
            let line = r#"vouchsafe_journal_verdicts_total{verdict="stale_balance"}"#;
            stale_balances += Operator::of(node).metric(line).await;
        }
        println!(
            "{} orders on two nodes, {replays:?}; {stale_balances} rejected for a stale balance",
            acknowledged.len()
        );
        assert_eq!(self.second.stop(), Some(0), "{}", self.second.log_tail());
        drop(self.database);
        assert_eq!(self.first.stop(), Some(0), "{}", self.first.log_tail());
        stale_balances
    }
}
