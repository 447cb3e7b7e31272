//! Is every order that was acknowledged there, and none twice, after everything has been killed again and again?
//!
//! | step of a round | what it shows |
//! |---|---|
//! | clients order, an operator imports and tops up; at a random moment something is killed | |
//! | what was killed is started again, under the same load | it comes back without help |
//! | the doors close, every open key is replayed | every unknown outcome becomes definite, once |
//! | partners cancel, read and pay out, operators decide, vendors sell: [`crate::life`] | what was said of each stands |
//! | every acknowledged order is read, the codes of some | it is there, byte for byte; no code twice |
//! | the checker reads the whole history, SQL the whole database | nothing broke, in this round or before |
//!
//! `VOUCHSAFE_CRASH_ROUNDS` and `VOUCHSAFE_CRASH_SEED` say how many rounds, and from which seed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::{Connection as _, PgConnection};
use tokio::task::JoinSet;
use vouchsafe::postgres;

use crate::chance::Chance;
use crate::client::{Client, Menu};
use crate::closing::{fetch_codes, read_back, settle, until_definite};
use crate::front::{Front, Question, Wish};
use crate::life::Life;
use crate::operator::Operator;
use crate::processes::{Strike, postmaster_pid, strike};
use crate::program::{Program, directory};
use crate::tally::{Answers, Tally};
use crate::verdict::{heard_once, pronounce};
use crate::world::{BESIDE, HOT, furnish, order_of};
use crate::{controls, one_at_a_time, run};

/// Rounds of an ordinary test run.
const ROUNDS: u64 = 20;

/// Clients at a time.
const CLIENTS: u32 = 16;

/// What partners begin with, in USD: more than all vouchers cost; and the last one is poor.
const MONEY: [u32; 4] = [20_000_000, 20_000_000, 20_000_000, ALLOWANCE];

/// What the poor one gets in each round, in USD: less than it would spend.
const ALLOWANCE: u32 = 2_000;

/// After how many rounds the program's own `verify` is asked, too.
const VERIFY_EVERY: u64 = 5;

/// How often a start is killed as well, before it has come far. Per cent.
const KILLED_AGAIN: u64 = 30;

/// How many vouchers come in when a round is over, for whoever waits and one more order.
const AFTERWARDS: u64 = 100;

/// How often they may all go to those who wait: more would be more than a round's clients can have ordered.
const MOST_WAIT: u32 = 20;

/// The share of orders whose codes are fetched in the end of a round. Per cent.
const CODES: u64 = 10;

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_sold_twice() {
    let _turn = one_at_a_time();
    let seed = setting("VOUCHSAFE_CRASH_SEED").unwrap_or_else(|| getrandom::u64().unwrap());
    let rounds = setting("VOUCHSAFE_CRASH_ROUNDS").unwrap_or(ROUNDS);
    println!("VOUCHSAFE_CRASH_SEED={seed} VOUCHSAFE_CRASH_ROUNDS={rounds}");
    run(async {
        let mut crash = Crash::begin(seed).await;
        let life = Life::begin(&crash.program).await;
        for round in 1..=rounds {
            let _told = Told { seed, round };
            crash.round(round, &life).await;
        }
        let _told = Told { seed, round: rounds };
        crash.end(rounds, life).await;
    });
}

pub(crate) fn setting(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Says where it was when a test fails.
pub(crate) struct Told {
    pub(crate) seed: u64,
    pub(crate) round: u64,
}

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!(
                "failed in round {}: VOUCHSAFE_CRASH_SEED={}",
                self.round, self.seed
            );
        }
    }
}

pub(crate) struct Crash {
    pub(crate) chance: Chance,
    pub(crate) program: Program,
    pub(crate) front: Arc<Front>,
    /// What is still to strike before every kind has struck as often as every other.
    deck: Vec<Strike>,
    tally: Tally,
    /// How many starts were killed.
    killed_again: u32,
    /// What the operator imported of the hot SKU.
    imported: u64,
    /// Orders that were read back in the end of an earlier round.
    read: BTreeSet<String>,
    directory: tempfile::TempDir,
}

impl Crash {
    pub(crate) async fn begin(seed: u64) -> Self {
        let directory = directory();
        let mut program = Program::at(&directory.path().join("data"), &[]);
        println!("first start: {} ms", program.start().await.as_millis());
        let buyers = furnish(&program, &MONEY).await;
        let front = Arc::new(Front::new(buyers, &directory.path().join("history.jsonl")));
        let chance = Chance::new(seed);
        Self {
            chance,
            program,
            front,
            deck: Vec::new(),
            tally: Tally::default(),
            killed_again: 0,
            imported: 0,
            read: BTreeSet::new(),
            directory,
        }
    }

    async fn round(&mut self, round: u64, life: &Life) {
        let first = self.front.next_operation();
        let kind = self.draw();
        self.restock(round).await;
        let (load, supplies) = self.open_doors(round);
        let movers = life.open_doors(&self.front, &self.program, &mut self.chance);
        let mut beside = self.database().await;
        tokio::time::sleep(Duration::from_millis(self.chance.between(20, 900))).await;
        let server = postmaster_pid(self.program.data_dir());
        strike(kind, &mut self.program, &mut beside, &mut self.chance).await;
        let away = self.recover(kind, server).await;
        tokio::time::sleep(Duration::from_millis(self.chance.between(50, 300))).await;
        self.front.open_doors(false);
        load.join_all().await;
        supplies.join_all().await;
        movers.join_all().await;
        let answers = Answers::since(&self.front.history(), first);
        let settled = settle(&self.front, &self.program.base_url()).await;
        life.settle(&self.program).await;
        println!(
            "round {round:>3}: {kind:?}, ready after {} ms; {answers:?}, {settled:?}",
            away.as_millis()
        );
        self.tally.add(kind, answers, settled, away);
        self.place_one(round).await;
        self.look_back().await;
        let mut database = self.database().await;
        pronounce(&self.front, &mut database).await;
        life.judge(&self.program, &mut database).await;
        if round.is_multiple_of(VERIFY_EVERY) {
            life.everything_ends(&mut database).await;
            self.program.verify();
        }
        if round == 1 {
            // While there is little to look through.
            controls::each_invariant_turns_red(&mut database).await;
        }
    }

    /// The next kind: every kind comes once before one comes again.
    fn draw(&mut self) -> Strike {
        if self.deck.is_empty() {
            self.deck = Strike::ALL.to_vec();
            self.chance.shuffle(&mut self.deck);
        }
        self.deck.pop().expect("there are kinds")
    }

    /// Enough that something can be sold, and little enough that it runs out at times.
    pub(crate) async fn restock(&mut self, round: u64) {
        let mut operator = Operator::of(&self.program);
        for goods in [HOT, BESIDE[0], BESIDE[1]] {
            let count = self.chance.between(200, 1_200);
            operator.import(&goods, &format!("before-{round}"), count).await;
            self.imported += if goods.product_id == HOT.product_id {
                count
            } else {
                0
            };
        }
    }

    /// Lets clients in, who order from this menu.
    pub(crate) fn let_in(&mut self, menu: Menu) -> JoinSet<()> {
        self.front.open_doors(true);
        let mut load = JoinSet::new();
        for proc in 0..CLIENTS {
            load.spawn(
                Client::new(
                    &self.front,
                    proc,
                    &self.program.base_url(),
                    menu,
                    self.chance.fork(),
                )
                .run(),
            );
        }
        load
    }

    /// Clients begin, and an operator whose work is hit, too.
    pub(crate) fn open_doors(&mut self, round: u64) -> (JoinSet<()>, JoinSet<()>) {
        let (load, mut supplies) = (self.let_in(Menu::Everything), JoinSet::new());
        let mut operator = Operator::of(&self.program);
        let poor = self.front.buyers[MONEY.len() - 1].clone();
        let (count, pause) = (self.chance.between(100, 1_500), self.chance.between(0, 500));
        self.imported += count;
        supplies.spawn(async move {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            operator.import(&HOT, &format!("within-{round}"), count).await;
            operator.top_up(&poor, ALLOWANCE, &format!("round {round}")).await;
        });
        (load, supplies)
    }

    /// Starts what has to be started, and says how long it took until orders could be placed again.
    pub(crate) async fn recover(&mut self, kind: Strike, server: u32) -> Duration {
        let began = Instant::now();
        if kind.hits_service() {
            if self.chance.percent(KILLED_AGAIN) {
                self.program.spawn();
                tokio::time::sleep(Duration::from_millis(self.chance.between(0, 700))).await;
                self.program.kill();
                self.killed_again += 1;
            }
            return self.program.start().await;
        }
        while kind == Strike::Postmaster && self.is_there(server) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.program.wait_until_ready().await;
        began.elapsed()
    }

    /// Whether the killed server has not been noticed yet.
    fn is_there(&self, server: u32) -> bool {
        let text = std::fs::read_to_string(self.program.data_dir().join("postgres/data/postmaster.pid"));
        text.is_ok_and(|text| text.starts_with(&format!("{server}\n")))
    }

    /// After all this an order can be placed, once nobody who came before waits for stock any more.
    async fn place_one(&mut self, round: u64) {
        let mut operator = Operator::of(&self.program);
        let mut client = self.front.buyers[0].at(&self.program.base_url());
        for delivery in 0.. {
            let wish = Wish {
                buyer: 0,
                key: format!("after-{round}-{delivery}"),
                body: order_of(&[(HOT, 1)]),
            };
            operator
                .import(&HOT, &format!("after-{round}-{delivery}"), AFTERWARDS)
                .await;
            self.imported += AFTERWARDS;
            let answer = until_definite(&self.front, 0, &mut client, &Question::Order(wish)).await;
            if answer.status.as_u16() == 201 {
                return;
            }
            let given_out = answer
                .error_code()
                .is_some_and(|code| code == "INSUFFICIENT_INVENTORY");
            assert!(
                given_out && delivery < MOST_WAIT,
                "{}",
                String::from_utf8_lossy(&answer.body)
            );
        }
    }

    async fn look_back(&mut self) {
        let mut new = self.front.taken();
        new.retain(|taken| self.read.insert(taken.order_id.clone()));
        read_back(&self.front, &self.program.base_url(), &new).await;
        // Of one at least, so that there is something to hold the rules about readings against.
        let mut chosen: Vec<_> = new.pop().into_iter().collect();
        chosen.extend(new.into_iter().filter(|_| self.chance.percent(CODES)));
        fetch_codes(&self.front, &self.program.base_url(), chosen.into_iter()).await;
    }

    pub(crate) async fn database(&self) -> PgConnection {
        let options = postgres::running(self.program.data_dir()).unwrap();
        PgConnection::connect_with(&options).await.unwrap()
    }

    /// Everything is read once more after the last round, and the service ends as it should.
    async fn end(mut self, rounds: u64, life: Life) {
        let taken = self.front.taken();
        read_back(&self.front, &self.program.base_url(), &taken).await;
        let mut database = self.database().await;
        life.everything_ends(&mut database).await;
        life.judge(&self.program, &mut database).await;
        pronounce(&self.front, &mut database).await;
        let poor = &self.front.buyers[MONEY.len() - 1];
        let cents = 100 * u64::from(ALLOWANCE) * (rounds + 1);
        heard_once(&mut self.database().await, self.imported, &poor.partner_id, cents).await;
        controls::a_forged_history_turns_red(&self.directory.path().join("history.jsonl"));
        println!(
            "{} orders, each read back twice; {} starts killed\n{}{}",
            taken.len(),
            self.killed_again,
            self.tally,
            life.counts()
        );
        if rounds >= Strike::ALL.len() as u64 {
            assert!(
                self.tally.missing().is_empty(),
                "what never struck: {:?}",
                self.tally.missing()
            );
            let settled = self.tally.settled();
            assert!(
                settled.committed > 0 && settled.not_written > 0,
                "both outcomes are met: {settled:?}"
            );
        }
        assert!(
            self.program.stop(),
            "a drained service ends well:\n{}",
            self.program.log_end()
        );
        self.program.verify();
    }
}
