//! Do two services on one database sell anything twice, when one of them sleeps past its lease and wakes up again?
//!
//! | step | the first node | the second node |
//! |---|---|---|
//! | each imports and claims its own stock | sells | sells, to the same partners, for the same money |
//! | SIGSTOP for longer than its lease | asleep, with orders under way | settles those, takes its chunks, sells from them |
//! | SIGCONT | its commits with lost chunks are refused | sells |
//! | new stock comes to it | sells again | sells |

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use tokio::task::JoinSet;
use vouchsafe::postgres;
use vouchsafe_load::client::RequestFailure;

use crate::rng::Rng;
use crate::client::{Client, OrderMix};
use crate::resolution::{read_back, replay_unresolved, send_until_definite};
use crate::load_session::{LoadSession, Request, OrderRequest};
use crate::operator::Operator;
use crate::processes::send_signal;
use crate::program::{Program, test_directory};
use crate::checks::check_everything;
use crate::fixtures::{OTHERS, TestProduct, HOT, seed_service, order_body};
use crate::{lock_test_turn, run};

/// Both nodes read the same codes.
const MASTER_KEY: (&str, &str) = (
    "VOUCHSAFE_MASTER_KEY",
    "5f1c0b7d9e3a48264b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f901a2b",
);

/// What the two partners begin with, in USD: one has plenty, the other's runs out on both nodes at once.
const OPENING_BALANCES: [u32; 2] = [10_000_000, 3_000];

/// Clients at each node.
const CLIENTS: u32 = 6;

/// What each node imports of each product for itself: four chunks.
const OWN_STOCK: u64 = 2_000;

/// How long the lease may take to run out (15 s), or the stock to be taken.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(60);

struct NodePair {
    first: Program,
    second: Program,
    session: Arc<LoadSession>,
    database: PgConnection,
    rng: Rng,
}

#[test]
fn a_node_that_slept_past_its_lease_sells_nothing_that_another_took() {
    let _turn = lock_test_turn();
    run(async {
        let directory = test_directory();
        let mut pair = NodePair::start(directory.path()).await;
        pair.run_load_for(Duration::from_millis(1_500)).await;
        pair.sleep_past_the_lease().await;
        pair.wake_up().await;
        pair.recover().await;
        pair.run_load_for(Duration::from_millis(1_000)).await;
        pair.finish().await;
    });
}

impl NodePair {
    async fn start(directory: &std::path::Path) -> Self {
        let mut first = Program::new(&directory.join("first"), &[MASTER_KEY]);
        first.start().await;
        let buyers = seed_service(&first, &OPENING_BALANCES).await;
        let options = postgres::find_running(first.data_dir()).unwrap();
        let url = options.to_url_lossy();
        let mut second = Program::new(
            &directory.join("second"),
            &[MASTER_KEY, ("DATABASE_URL", url.as_str())],
        );
        second.start().await;
        let front = Arc::new(LoadSession::new(buyers, &directory.join("history.jsonl")));
        let database = PgConnection::connect_with(&options).await.unwrap();
        let pair = Self {
            first,
            second,
            session: front,
            database,
            rng: Rng::new(7),
        };
        for (node, name) in [(&pair.first, "first"), (&pair.second, "second")] {
            for goods in [HOT, OTHERS[0]] {
                Operator::of(node).import_stock(&goods, name, OWN_STOCK).await;
                pair.place_order(node, &format!("claim-{name}-{}", goods.product_id), goods, 1)
                    .await;
            }
        }
        pair
    }

    /// Places an order at a node, which must be accepted.
    async fn place_order(&self, node: &Program, key: &str, goods: TestProduct, quantity: u64) {
        let wish = OrderRequest {
            buyer: 0,
            key: key.to_owned(),
            body: order_body(&[(goods, quantity)]),
        };
        let mut client = self.session.buyers[0].client(&node.base_url());
        let answer = send_until_definite(&self.session, 0, &mut client, &Request::Order(wish)).await;
        assert_eq!(
            answer.status.as_u16(),
            201,
            "{key}: {}",
            String::from_utf8_lossy(&answer.body)
        );
    }

    fn start_load(&mut self) -> JoinSet<()> {
        self.session.set_running(true);
        let mut load = JoinSet::new();
        for proc in 0..2 * CLIENTS {
            // Partners take turns from one number to the next, nodes every second one.
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

    async fn run_load_for(&mut self, time: Duration) {
        let load = self.start_load();
        tokio::time::sleep(time).await;
        self.session.set_running(false);
        load.join_all().await;
    }

    /// How many chunks of the hot SKU that have something to sell belong to whom: the first node, the second.
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

    /// The first one stops in the middle of its orders; the second one settles them and takes its stock.
    async fn sleep_past_the_lease(&mut self) {
        let (first, second) = self.owned_chunks().await;
        assert!(
            first > 0 && second > 0,
            "each has stock of its own: {first}, {second}"
        );
        let load = self.start_load();
        tokio::time::sleep(Duration::from_millis(200)).await;
        send_signal(self.first.pid(), Signal::STOP);
        let began = Instant::now();
        tokio::time::sleep(Duration::from_millis(500)).await;
        self.session.set_running(false);
        load.join_all().await;
        let mut number = 0;
        while self.owned_chunks().await.0 > 0 {
            assert!(began.elapsed() < TAKEOVER_TIMEOUT, "its stock is not taken");
            self.buy_out(number).await;
            number += 1;
        }
        println!(
            "its stock was taken {} ms after SIGSTOP",
            began.elapsed().as_millis()
        );
        let settled = replay_unresolved(&self.session, &self.second.base_url()).await;
        println!("under way in it, found out at the other: {settled:?}");
        assert!(
            self.owned_chunks().await.1 > 0,
            "something of what was taken is left to be sold"
        );
    }

    /// A large order at the second one: served, or told to come again while what is there is another's.
    async fn buy_out(&self, number: u32) {
        let wish = OrderRequest {
            buyer: 0,
            key: format!("out-{number}"),
            body: order_body(&[(HOT, 100)]),
        };
        let mut client = self.session.buyers[0].client(&self.second.base_url());
        let came = self.session.send_recorded(0, &mut client, &Request::Order(wish), None).await;
        let status = came.unwrap().status.as_u16();
        assert!(
            status == 201 || status == 503,
            "what another owns is not sold out: {status}"
        );
    }

    /// What the first one still believes to have is refused.
    async fn wake_up(&mut self) {
        send_signal(self.first.pid(), Signal::CONT);
        let mut client = self.session.buyers[0].client(&self.first.base_url());
        for number in 0..10 {
            let wish = OrderRequest {
                buyer: 0,
                key: format!("woken-{number}"),
                body: order_body(&[(HOT, 1)]),
            };
            let came = self.session.send_recorded(0, &mut client, &Request::Order(wish), None).await;
            // Right after a pause the listener's own clock is behind: it may take the first heads for too slow, and
            // close the connection under the next.
            if let Err(RequestFailure::NotSent(_)) = came {
                continue;
            }
            let status = came.unwrap().status.as_u16();
            assert!(
                status == 503 || status == 408,
                "it has nothing left, and others have: {status}"
            );
        }
        let refused = Operator::of(&self.first)
            .metric(r#"vouchsafe_journal_verdicts_total{verdict="stale_stock"}"#)
            .await;
        println!("refused in the commit after it woke up: {refused}");
        assert!(refused > 0, "its commits with lost chunks are refused");
    }

    /// New stock makes it whole.
    async fn recover(&mut self) {
        Operator::of(&self.first).import_stock(&HOT, "fresh", OWN_STOCK).await;
        let began = Instant::now();
        self.place_order(&self.first, "recovered", HOT, 1).await;
        println!(
            "it sells again {} ms after an import",
            began.elapsed().as_millis()
        );
        // What waits at it for other goods has to find some, too.
        Operator::of(&self.first)
            .import_stock(&OTHERS[0], "fresh", OWN_STOCK)
            .await;
    }

    async fn finish(mut self) {
        Operator::of(&self.first).import_stock(&HOT, "last", OWN_STOCK).await;
        let settled = replay_unresolved(&self.session, &self.first.base_url()).await;
        let taken = self.session.acknowledged_orders();
        let (half, other) = taken.split_at(taken.len() / 2);
        read_back(&self.session, &self.first.base_url(), other).await;
        read_back(&self.session, &self.second.base_url(), half).await;
        check_everything(&self.session, &mut self.database).await;
        self.first.verify();
        let mut spent_elsewhere = 0;
        for node in [&self.first, &self.second] {
            let line = r#"vouchsafe_journal_verdicts_total{verdict="stale_balance"}"#;
            spent_elsewhere += Operator::of(node).metric(line).await;
        }
        println!(
            "{} orders on two nodes, {settled:?}; {spent_elsewhere} found their money spent",
            taken.len()
        );
        assert!(spent_elsewhere > 0, "the nodes met at one wallet");
        assert!(self.second.stop(), "{}", self.second.log_tail());
        drop(self.database);
        assert!(self.first.stop(), "{}", self.first.log_tail());
    }
}
