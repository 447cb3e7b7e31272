//! Random walks: partners, operators, faults, panics, restarts and takeovers in an order that a seed decides.
//!
//! Rule: after each step the rows are sound and no partner has heard two things; when nothing is under way, no actor
//! holds anything and each knows what the database knows. One seed gives one history.

mod dice;
mod epoch;
mod life;
mod steps;

pub use self::dice::ANSWERS;
pub use self::steps::STEPS;

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::task::JoinHandle;

use self::dice::Dice;
use super::node::heard;
use super::vendors::Trouble;
use super::{Ask, Heard, History, Node, World, build};
use crate::domain::ids::{PartnerId, TransactionId};
use crate::flows::{Booked, NotBooked, TopUp};
use crate::testing::{FaultKind, Rates};

/// The partners: one is rich, one has enough at times, one is poor.
const PARTNERS: [(PartnerId, i64); 3] = [
    (build::partner(1), 50_000_000),
    (build::partner(2), 600_000),
    (build::partner(3), 12_000),
];

/// How many steps are walked between two moments at which nothing is under way.
const STEPS_TO_REST: u32 = 25;

/// How long whatever was begun may take to its end once nothing goes wrong any more.
const MINUTES_TO_SETTLE: u32 = 15;

/// How many of these rests a day of all keys has.
const RESTS_OF_EPOCH: u32 = 4;

/// How often each kind of fault strikes, in a thousand calls, and how long what is slow takes at most: longer than a
/// decision is waited for.
const FAULTS_PER_MILLE: u32 = 25;
const LONGEST: Duration = Duration::from_secs(4);

/// What a walk was, for whoever reads it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// What happened, a line each; the same for the same seed.
    pub lines: Vec<String>,
    /// How often each kind of fault struck.
    pub faults: BTreeMap<FaultKind, u64>,
    /// How often each kind of step was made.
    pub steps: BTreeMap<&'static str, u64>,
    /// How often each kind of answer was heard.
    pub answers: BTreeMap<&'static str, u64>,
    /// How often each thing went wrong with vendors.
    pub troubles: BTreeMap<Trouble, u64>,
}

/// A call under way.
enum Call {
    Order(Ask, JoinHandle<Heard>),
    Booking(TopUp, JoinHandle<Result<Booked, NotBooked>>),
    /// Something that was there is to move on; what came of it in a word.
    Change(String, JoinHandle<&'static str>),
}

impl Call {
    fn is_over(&self) -> bool {
        match self {
            Self::Order(_, task) => task.is_finished(),
            Self::Booking(_, task) => task.is_finished(),
            Self::Change(_, task) => task.is_finished(),
        }
    }
}

/// A walk under way.
struct Walk {
    world: World,
    dice: Dice,
    /// By place: `one` and `two`, each alive or dead.
    nodes: [Option<Node>; 2],
    calls: Vec<Call>,
    history: History,
    booked: BTreeMap<String, TransactionId>,
    epoch: u32,
    keys: u32,
    walked: Walked,
}

const NAMES: [&str; 2] = ["one", "two"];

/// Walks so many steps.
///
/// # Panics
/// When a rule is broken, with what happened before.
pub async fn walk(seed: u64, steps: u32) -> Walked {
    let mut walk = Walk::begin(seed).await;
    for step in 1..=steps {
        walk.step().await;
        walk.look().await;
        if step % STEPS_TO_REST == 0 {
            walk.rest().await;
        }
        if step % (STEPS_TO_REST * RESTS_OF_EPOCH) == 0 {
            walk.end_epoch().await;
        }
    }
    walk.rest().await;
    walk.end_epoch().await;
    walk.sell_out().await;
    walk.walked.faults = walk.world.db.fault_counts();
    walk.walked.troubles = walk.world.market.troubles();
    walk.walked
}

impl Walk {
    async fn begin(seed: u64) -> Self {
        let world = World::new();
        for (partner_id, amount) in PARTNERS {
            world.give(partner_id, amount).await;
        }
        let nodes = [
            Some(world.start(NAMES[0]).await),
            Some(world.start(NAMES[1]).await),
        ];
        nodes.iter().flatten().for_each(Node::looks);
        let mut walk = Self {
            world,
            dice: Dice::new(seed),
            nodes,
            calls: Vec::new(),
            history: History::default(),
            booked: BTreeMap::new(),
            epoch: 0,
            keys: 0,
            walked: Walked::default(),
        };
        walk.make_trouble();
        walk
    }

    /// Faults strike by chance from here on.
    fn make_trouble(&mut self) {
        let seed = self.dice.seed();
        self.world
            .db
            .fail_by_chance(seed, Rates::each(FAULTS_PER_MILLE, LONGEST));
        let seed = self.dice.seed();
        self.world.market.make_trouble(seed);
    }

    /// Nothing goes wrong from here on.
    fn heal(&mut self) {
        self.world.db.heal();
        self.world.market.heal();
    }

    fn note(&mut self, line: String) {
        self.walked.lines.push(line);
    }

    /// Hears what was answered meanwhile, and checks what must hold at any moment.
    async fn look(&mut self) {
        let (over, open) = std::mem::take(&mut self.calls)
            .into_iter()
            .partition(Call::is_over);
        self.calls = open;
        let over: Vec<Call> = over;
        for call in over {
            self.hear(call).await;
        }
        self.expect_nothing("the rows", self.world.db.invariants());
        self.expect_nothing("what was bought", self.world.market.wrongs());
        self.expect_nothing("what was heard", self.history.wrongs());
    }

    fn expect_nothing(&self, what: &str, wrongs: Vec<String>) {
        let before = self.walked.lines.len().saturating_sub(60);
        let lines = self.walked.lines[before..].join("\n");
        assert!(wrongs.is_empty(), "{lines}\n{what}: {wrongs:#?}");
    }

    async fn hear(&mut self, call: Call) {
        match call {
            Call::Order(ask, task) => {
                let heard = heard(task).await;
                self.history.hear(&ask, &heard);
                self.heard(dice::name_of(&heard), &format!("{} {:?}", ask.key, ask.lines));
            }
            Call::Booking(command, task) => match task.await {
                Ok(booked) => self.hear_booked(&command, booked),
                Err(_) => self.heard("a booker is gone", &command.reference),
            },
            Call::Change(what, task) => match task.await {
                Ok(name) => self.heard(name, &what),
                Err(error) if error.is_cancelled() => self.heard("gone", &what),
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
        }
    }

    fn hear_booked(&mut self, command: &TopUp, booked: Result<Booked, NotBooked>) {
        let name = dice::name_of_booked(&booked);
        if let Ok(booked) = booked {
            let first = self
                .booked
                .entry(command.reference.clone())
                .or_insert(booked.transaction_id);
            assert_eq!(
                *first, booked.transaction_id,
                "{} is booked once",
                command.reference
            );
        }
        self.heard(name, &command.reference);
    }

    fn heard(&mut self, name: &'static str, what: &str) {
        *self.walked.answers.entry(name).or_default() += 1;
        self.note(format!("    {what}: {name}"));
    }

    /// Waits until everything that was begun has its end: a claim of a node that died lasts two minutes, and an old purchase
    /// is asked about every five.
    async fn settle(&mut self) {
        // What a dead node has is anybody's when its lease is over.
        for (name, _) in NAMES.iter().zip(&self.nodes).filter(|(_, node)| node.is_none()) {
            self.world.db.lapse_lease(name);
        }
        for _ in 0..MINUTES_TO_SETTLE {
            tokio::time::sleep(Duration::from_secs(60)).await;
            if self.world.market.loose_ends().is_empty() {
                return;
            }
        }
        self.expect_nothing("what has no end", self.world.market.loose_ends());
    }

    /// Lets everything come to its end, without faults, and checks what must hold when nothing is under way.
    async fn rest(&mut self) {
        self.heal();
        self.settle().await;
        self.look().await;
        assert!(self.calls.is_empty(), "a call has no end");
        for node in self.nodes.iter().flatten() {
            self.expect_nothing(node.name, node.leaks().await);
        }
        self.note("rest".to_owned());
        self.make_trouble();
    }
}
