//! Two nodes on one database. A killed node's stock is sold by the other, and no acknowledged order is lost.
//!
//! A suspended node must sell nothing that the other took over, and sells again when it runs:
//!
//! | step | the first node | the second node |
//! |---|---|---|
//! | each imports and claims its own stock | sells | sells to the same partners, from the same wallets |
//! | SIGSTOP until its stock is taken over | suspended with orders in flight | settles those, takes over its chunks, sells from them |
//! | SIGCONT | notices the loss, at the latest when a commit with lost chunks is rejected; sells what the other releases | releases what it does not need |
//! | it imports new stock | sells | sells |

use std::time::{Duration, Instant};

use rustix::process::Signal;
use vouchsafe_api_client::RequestFailure;
use vouchsafe_test_harness::{WAIT_TIMEOUT, send_signal};

use crate::checks::check_everything;
use crate::fixtures::{HOT, OTHERS, order_body, test_directory};
use crate::load_session::{OrderRequest, Request};
use crate::node_pair::{NodePair, OWN_STOCK, Sale};
use crate::operator::Operator;
use crate::resolution::{read_back, replay_unresolved};
use crate::rounds::{SeedOnPanic, env_number};
use crate::{lock_test_turn, run};

/// Vouchers of an order that makes its node take over stock: several chunks, so that a takeover of all stock
/// is short.
const LARGE_ORDER: u64 = 500;

/// Orders of both nodes: far fewer than a node's stock serves.
const LOAD_ORDERS: usize = 200;

/// Top-up of the second partner, which spends it within [`LOAD_ORDERS`]. USD.
const ALLOWANCE: u32 = 300;

/// Vouchers of an order that sells what large orders leave.
const SMALL_ORDER: u64 = 20;

/// Orders at a node that was suspended.
const WAKING_ORDERS: u64 = 10;

/// How often the listener updates its clock.
const CLOCK_UPDATE: Duration = Duration::from_millis(500);

/// Kills of the second node; `VOUCHSAFE_CRASH_ROUNDS` overrides it.
const KILLS: u64 = 3;

#[test]
fn suspended_node_sells_no_taken_stock() {
    let _turn = lock_test_turn();
    run(async {
        let directory = test_directory();
        let mut pair = NodePair::start(directory.path(), 7).await;
        pair.compete_for_wallet().await;
        pair.suspend_until_taken_over().await;
        pair.wake_up().await;
        pair.recover().await;
        let load = pair.start_load();
        pair.session.wait_for_orders(LOAD_ORDERS).await;
        pair.stop_load(load).await;
        pair.finish().await;
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
        pair.finish().await;
    });
}

impl NodePair {
    /// Runs the load until a commit is rejected because the other node has spent the balance.
    async fn compete_for_wallet(&mut self) {
        let load = self.start_load();
        let mut operator = Operator::of(&self.first);
        for number in 0.. {
            self.session.wait_for_orders(LOAD_ORDERS).await;
            if self.count_stale_balances().await > 0 {
                break;
            }
            operator
                .top_up(&self.session.buyers[1], ALLOWANCE, &format!("again {number}"))
                .await;
        }
        self.stop_load(load).await;
    }

    /// Suspends the first node with orders in flight; the second settles them and takes over its stock.
    async fn suspend_until_taken_over(&mut self) {
        let (first, second) = self.owned_chunks().await;
        assert!(
            first > 0 && second > 0,
            "each node must own stock: {first}, {second}"
        );
        let load = self.start_load();
        self.session.wait_for_orders(LOAD_ORDERS).await;
        send_signal(self.first.pid(), Signal::STOP);
        let started = Instant::now();
        self.session.wait_for_orders(LOAD_ORDERS).await;
        self.stop_load(load).await;
        let mut number = 0;
        while self.owned_chunks().await.0 > 0 {
            assert!(
                started.elapsed() < WAIT_TIMEOUT,
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

    /// Kills the second node at a random time under load; the first sells its stock, and every order of it is
    /// resolved there.
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
        self.session.wait_for_orders(LOAD_ORDERS).await;
        self.stop_load(load).await;
        let left = self.owned_chunks().await.1;
        let longest_gap = self.sell_out(round, killed).await;
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

    /// Sells the stock at the first node but for less than a small order. Returns the longest time between
    /// two sales.
    async fn sell_out(&mut self, round: u64, killed: Instant) -> Duration {
        let mut last_sale = killed;
        let mut longest_gap = Duration::ZERO;
        let mut quantity = LARGE_ORDER;
        for number in 0.. {
            match self.buy(true, format!("out-{round}-{number}"), quantity).await {
                Sale::Delivered => {
                    longest_gap = longest_gap.max(last_sale.elapsed());
                    last_sale = Instant::now();
                }
                Sale::Unavailable => assert!(
                    last_sale.elapsed() < WAIT_TIMEOUT,
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
                    // Until the listener's clock is set again, it times out request heads and closes their
                    // connections.
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
        // None if it has renewed its lease, which drops what it has lost, before the first order.
        println!("commits rejected after SIGCONT: {rejected}, orders: {statuses:?}");
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
}
