//! Crash rounds: every acknowledged order must exist exactly once after repeated kills.
//!
//! | step of a round | what it shows |
//! |---|---|
//! | clients order, an operator imports and tops up; at a random time a fault is injected | |
//! | the killed process is restarted under the same load | it recovers without help |
//! | the load stops, every unresolved key is replayed | every unknown outcome becomes definite, once |
//! | partners cancel, read and pay out, operators decide, vendors sell: [`crate::lifecycle`] | every acknowledgement is retained |
//! | every acknowledged order is read, and the codes of some | it exists, byte for byte; no code twice |
//! | the checker reads the whole history, SQL the whole database | no violation, in this round or before |
//!
//! `VOUCHSAFE_CRASH_ROUNDS` and `VOUCHSAFE_CRASH_SEED` set the number of rounds and the seed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::{Connection as _, PgConnection};
use tokio::task::JoinSet;

use crate::checks::{assert_applied_once, check_everything};
use crate::client::{Client, OrderMix};
use crate::fixtures::{HOT, OTHERS, order_body, seed_service};
use crate::lifecycle::LifecycleLoad;
use crate::load_session::{LoadSession, OrderRequest, Request};
use crate::operator::Operator;
use crate::processes::{Fault, inject, postmaster_pid};
use vouchsafe_test_harness::Instance;

use crate::fixtures::{crash_instance, test_directory};
use crate::resolution::{fetch_codes, read_back, replay_unresolved, send_until_definite};
use crate::rng::Rng;
use crate::tally::{ResponseCounts, Tally};
use crate::{controls, lock_test_turn, run};

/// One round per kind of fault. Campaigns set `VOUCHSAFE_CRASH_ROUNDS`.
const ROUNDS: u64 = Fault::ALL.len() as u64;

const CLIENTS: u32 = 16;

/// More than all vouchers cost, except for the last partner. USD.
const OPENING_BALANCES: [u32; 4] = [20_000_000, 20_000_000, 20_000_000, ALLOWANCE];

/// Top-up of the last partner per round: less than it would spend. USD.
const ALLOWANCE: u32 = 2_000;

const VERIFY_EVERY: u64 = 5;

/// Probability that the restarting process is killed again.
const KILLED_START_PERCENT: u64 = 30;

/// Vouchers imported at the end of a round, for waiting orders and one more.
const FINAL_IMPORT: u64 = 100;

/// A round's clients cannot have ordered more than this many imports.
const MAX_FINAL_IMPORTS: u32 = 20;

/// Share of orders whose codes are fetched at the end of a round.
const CODES_PERCENT: u64 = 10;

#[test]
fn acknowledged_orders_after_kills_exist_once() {
    let _turn = lock_test_turn();
    let seed = env_number("VOUCHSAFE_CRASH_SEED").unwrap_or_else(|| getrandom::u64().unwrap());
    let rounds = env_number("VOUCHSAFE_CRASH_ROUNDS").unwrap_or(ROUNDS);
    println!("VOUCHSAFE_CRASH_SEED={seed} VOUCHSAFE_CRASH_ROUNDS={rounds}");
    run(async {
        let mut crash = CrashTest::start(seed).await;
        let lifecycle_load = LifecycleLoad::start(&crash.program).await;
        for round in 1..=rounds {
            let _context = SeedOnPanic { seed, round };
            crash.run_round(round, &lifecycle_load).await;
        }
        let _context = SeedOnPanic { seed, round: rounds };
        crash.finish(rounds, lifecycle_load).await;
    });
}

pub(crate) fn env_number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// Prints round and seed when the test panics.
pub(crate) struct SeedOnPanic {
    pub(crate) seed: u64,
    pub(crate) round: u64,
}

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!(
                "failed in round {}: VOUCHSAFE_CRASH_SEED={}",
                self.round, self.seed
            );
        }
    }
}

pub(crate) struct CrashTest {
    pub(crate) rng: Rng,
    pub(crate) program: Instance,
    pub(crate) session: Arc<LoadSession>,
    /// Faults left until every kind has occurred equally often.
    remaining_faults: Vec<Fault>,
    tally: Tally,
    killed_starts: u32,
    /// Vouchers of the hot SKU imported so far.
    imported: u64,
    read_back: BTreeSet<String>,
    directory: tempfile::TempDir,
}

impl CrashTest {
    pub(crate) async fn start(seed: u64) -> Self {
        let directory = test_directory();
        let mut program = crash_instance(&directory.path().join("data"), &[]);
        println!("first start: {} ms", program.restart().as_millis());
        let buyers = seed_service(&program, &OPENING_BALANCES).await;
        let session = Arc::new(LoadSession::new(buyers, &directory.path().join("history.jsonl")));
        let rng = Rng::new(seed);
        Self {
            rng,
            program,
            session,
            remaining_faults: Vec::new(),
            tally: Tally::default(),
            killed_starts: 0,
            imported: 0,
            read_back: BTreeSet::new(),
            directory,
        }
    }

    async fn run_round(&mut self, round: u64, lifecycle_load: &LifecycleLoad) {
        let first = self.session.next_operation();
        let kind = self.next_fault();
        self.restock(round).await;
        let (load, supplies) = self.start_load(round);
        let lifecycle = lifecycle_load.start_clients(&self.session, &self.program, &mut self.rng);
        let mut observer = self.database().await;
        self.wait_for_orders(0, 300).await;
        let server = postmaster_pid(self.program.data_dir());
        inject(kind, &mut self.program, &mut observer, &mut self.rng).await;
        let downtime = self.recover(kind, server).await;
        self.wait_for_orders(1, 100).await;
        self.session.set_running(false);
        load.join_all().await;
        supplies.join_all().await;
        lifecycle.join_all().await;
        let responses = ResponseCounts::since(&self.session.history(), first);
        let replays = replay_unresolved(&self.session, &self.program.base_url()).await;
        lifecycle_load.resolve_open_requests(&self.program).await;
        println!(
            "round {round:>3}: {kind:?}, ready after {} ms; {responses:?}, {replays:?}",
            downtime.as_millis()
        );
        self.tally.add(kind, responses, replays, downtime);
        self.place_final_order(round).await;
        self.read_back_new_orders().await;
        let mut database = self.database().await;
        check_everything(&self.session, &mut database).await;
        lifecycle_load.check(&self.program, &mut database).await;
        if round.is_multiple_of(VERIFY_EVERY) {
            lifecycle_load.wait_until_vendor_orders_end(&mut database).await;
            self.program.assert_verified();
        }
        if round == 1 {
            // The tables are still small.
            controls::assert_each_breakage_is_detected(&mut database).await;
        }
    }

    /// Returns the next fault: every kind occurs once before any repeats.
    fn next_fault(&mut self) -> Fault {
        if self.remaining_faults.is_empty() {
            self.remaining_faults = Fault::ALL.to_vec();
            self.rng.shuffle(&mut self.remaining_faults);
        }
        self.remaining_faults.pop().expect("the list was just filled")
    }

    /// Imports enough to sell, and little enough that it sometimes runs out.
    pub(crate) async fn restock(&mut self, round: u64) {
        let mut operator = Operator::of(&self.program);
        for product in [HOT, OTHERS[0], OTHERS[1]] {
            let count = self.rng.between(200, 1_200);
            operator
                .import_stock(&product, &format!("before-{round}"), count)
                .await;
            self.imported += if product.product_id == HOT.product_id {
                count
            } else {
                0
            };
        }
    }

    pub(crate) fn start_clients(&mut self, menu: OrderMix) -> JoinSet<()> {
        self.session.set_running(true);
        let mut load = JoinSet::new();
        for proc in 0..CLIENTS {
            load.spawn(
                Client::new(
                    &self.session,
                    proc,
                    &self.program.base_url(),
                    menu,
                    self.rng.fork(),
                )
                .run(),
            );
        }
        load
    }

    /// Starts the clients and an operator whose calls are interrupted as well.
    pub(crate) fn start_load(&mut self, round: u64) -> (JoinSet<()>, JoinSet<()>) {
        let (load, mut supplies) = (self.start_clients(OrderMix::AllProducts), JoinSet::new());
        let mut operator = Operator::of(&self.program);
        let poor = self.session.buyers[OPENING_BALANCES.len() - 1].clone();
        let (count, pause) = (self.rng.between(100, 1_500), self.rng.between(0, 500));
        self.imported += count;
        supplies.spawn(async move {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            operator
                .import_stock(&HOT, &format!("within-{round}"), count)
                .await;
            operator.top_up(&poor, ALLOWANCE, &format!("round {round}")).await;
        });
        (load, supplies)
    }

    /// Waits for a random number of acknowledged orders.
    pub(crate) async fn wait_for_orders(&mut self, min: u64, max: u64) {
        let orders = self.rng.between(min, max);
        self.session
            .wait_for_orders(usize::try_from(orders).unwrap())
            .await;
    }

    /// Restarts the killed process and returns the time until the service was ready.
    pub(crate) async fn recover(&mut self, kind: Fault, server: u32) -> Duration {
        let began = Instant::now();
        if kind.has_service() {
            if self.rng.percent(KILLED_START_PERCENT) {
                self.program.spawn();
                tokio::time::sleep(Duration::from_millis(self.rng.between(0, 700))).await;
                self.program.kill();
                self.killed_starts += 1;
            }
            return self.program.restart();
        }
        while kind == Fault::Postmaster && self.is_pid_file_of(server) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.program.wait_until_ready();
        began.elapsed()
    }

    /// Returns whether the pid file still has the killed server's pid.
    fn is_pid_file_of(&self, server: u32) -> bool {
        let text = std::fs::read_to_string(self.program.data_dir().join("postgres/data/postmaster.pid"));
        text.is_ok_and(|text| text.starts_with(&format!("{server}\n")))
    }

    /// Imports until all earlier orders have their stock and one more order can be placed.
    async fn place_final_order(&mut self, round: u64) {
        let mut operator = Operator::of(&self.program);
        let mut client = self.session.buyers[0].client(&self.program.base_url());
        for delivery in 0.. {
            let order = OrderRequest {
                buyer: 0,
                key: format!("after-{round}-{delivery}"),
                body: order_body(&[(HOT, 1)]),
            };
            operator
                .import_stock(&HOT, &format!("after-{round}-{delivery}"), FINAL_IMPORT)
                .await;
            self.imported += FINAL_IMPORT;
            let response = send_until_definite(&self.session, 0, &mut client, &Request::Order(order)).await;
            if response.status.as_u16() == 201 {
                return;
            }
            let is_shortage = response
                .error_code()
                .is_some_and(|code| code == "INSUFFICIENT_INVENTORY");
            assert!(
                is_shortage && delivery < MAX_FINAL_IMPORTS,
                "{}",
                String::from_utf8_lossy(&response.body)
            );
        }
    }

    async fn read_back_new_orders(&mut self) {
        let mut new = self.session.acknowledged_orders();
        new.retain(|acknowledged| self.read_back.insert(acknowledged.order_id.clone()));
        read_back(&self.session, &self.program.base_url(), &new).await;
        // At least one, so that the invariants about code reads are exercised.
        let mut chosen: Vec<_> = new.pop().into_iter().collect();
        chosen.extend(new.into_iter().filter(|_| self.rng.percent(CODES_PERCENT)));
        fetch_codes(&self.session, &self.program.base_url(), chosen.into_iter()).await;
    }

    pub(crate) async fn database(&self) -> PgConnection {
        let options = vouchsafe_private_postgres::find_running(self.program.data_dir()).unwrap();
        PgConnection::connect_with(&options).await.unwrap()
    }

    /// Reads everything once more after the last round and stops the service.
    async fn finish(mut self, rounds: u64, lifecycle_load: LifecycleLoad) {
        let acknowledged = self.session.acknowledged_orders();
        read_back(&self.session, &self.program.base_url(), &acknowledged).await;
        let mut database = self.database().await;
        lifecycle_load.wait_until_vendor_orders_end(&mut database).await;
        lifecycle_load.check(&self.program, &mut database).await;
        check_everything(&self.session, &mut database).await;
        let poor = &self.session.buyers[OPENING_BALANCES.len() - 1];
        let cents = 100 * u64::from(ALLOWANCE) * (rounds + 1);
        assert_applied_once(&mut self.database().await, self.imported, &poor.partner_id, cents).await;
        controls::assert_forged_history_is_rejected(&self.directory.path().join("history.jsonl"));
        println!(
            "{} orders, each read back twice; {} starts killed\n{}{}",
            acknowledged.len(),
            self.killed_starts,
            self.tally,
            lifecycle_load.counts()
        );
        if rounds >= Fault::ALL.len() as u64 {
            assert!(
                self.tally.unused_faults().is_empty(),
                "faults that never occurred: {:?}",
                self.tally.unused_faults()
            );
            let replays = self.tally.replays();
            assert!(
                replays.committed > 0 && replays.not_written > 0,
                "both replay outcomes must occur: {replays:?}"
            );
        }
        assert_eq!(
            self.program.stop(),
            Some(0),
            "the service failed to drain:\n{}",
            self.program.log_tail()
        );
        self.program.assert_verified();
    }
}
