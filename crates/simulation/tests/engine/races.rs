//! Concurrent operations on one order or payout, on one node and on two, each pair under many schedules.
//!
//! `races/allowed.txt` lists the allowed outcomes of each pair: both labels and the observed state. No other
//! outcome may occur, and each allowed one occurs under some schedule.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::sleep;
use vouchsafe_domain::payout::PayoutOutcome;
use vouchsafe_simulation::walk::{Node, Simulation};
use vouchsafe_simulation::{FaultKind, FaultRates, Guard, MemoryDatabase};

use crate::fixture::assert_settled;
use crate::operations::{InitialState, Operation, observe};
use crate::simulation_tests;

/// Schedules per pair and number of nodes. `VOUCHSAFE_RACE_SEEDS` overrides it.
const SEEDS: u64 = 60;

/// Maximum delay of faults and of each operation's start.
const MAX_DELAY: Duration = Duration::from_millis(5);

/// Initial states and the operations that race, each against each and against itself.
const RACES: [(InitialState, &[Operation]); 6] = [
    (
        InitialState::Delivered,
        &[Operation::Cancel, Operation::Revoke, Operation::Retrieve],
    ),
    (
        InitialState::AwaitingApproval(2),
        &[
            Operation::Cancel,
            Operation::Revoke,
            Operation::Approve,
            Operation::Reject,
        ],
    ),
    (
        InitialState::AwaitingVendor(1),
        &[
            Operation::Cancel,
            Operation::Revoke,
            Operation::Advance,
            Operation::GiveUp,
        ],
    ),
    (
        InitialState::PartiallyDelivered {
            bought: 1,
            retrieved: false,
        },
        &[
            Operation::Cancel,
            Operation::Revoke,
            Operation::Retrieve,
            Operation::Deliver,
            Operation::GiveUp,
        ],
    ),
    (InitialState::Funded, &[Operation::RequestPayout]),
    (
        InitialState::PayoutPending,
        &[
            Operation::DecidePayout(PayoutOutcome::Paid),
            Operation::DecidePayout(PayoutOutcome::Rejected),
            Operation::DecidePayout(PayoutOutcome::Failed),
            Operation::DecidePayout(PayoutOutcome::Cancelled),
        ],
    ),
];

/// Outcomes of each race, by its name.
type Outcomes = BTreeMap<String, BTreeSet<String>>;

fn allowed_outcomes() -> Outcomes {
    let mut outcomes = Outcomes::new();
    let mut race = String::new();
    for line in include_str!("races/allowed.txt").lines() {
        match line.strip_prefix("    ") {
            Some(end) => drop(outcomes.entry(race.clone()).or_default().insert(end.to_owned())),
            None => race = line.to_owned(),
        }
    }
    outcomes
}

/// Runs one schedule of a race; returns its outcome.
async fn race(state: InitialState, acts: [Operation; 2], nodes: usize, seed: u64) -> String {
    race_in(Simulation::new(), state, acts, nodes, seed).await
}

async fn race_in(
    sim: Simulation,
    state: InitialState,
    acts: [Operation; 2],
    nodes: usize,
    seed: u64,
) -> String {
    let (sim, one) = state.create_in(sim).await;
    let mut running = vec![one];
    if nodes == 2 {
        running.push(sim.start("two").await);
        running.iter().for_each(Node::start_stock_sharing);
    }
    let mut rng = StdRng::seed_from_u64(seed);
    let slow = FaultRates::none(MAX_DELAY)
        .with(FaultKind::SlowRead, 500)
        .with(FaultKind::Slow, 300);
    sim.db.fail_randomly(seed, slow);
    let first = rng.random_range(0..nodes);
    let [first_task, second_task] = [(0, first), (1, nodes - 1 - first)].map(|(index, node)| {
        let later = MAX_DELAY.mul_f64(rng.random_range(0.0..1.0));
        start_delayed(&sim, &running[node], acts[index], later)
    });
    let mut labels = [first_task.await.unwrap(), second_task.await.unwrap()];
    sim.db.heal();
    for node in &running {
        assert_settled(&sim, node).await;
    }
    // Two operations of one kind are interchangeable.
    if acts[0] == acts[1] {
        labels.sort();
    }
    format!("{} | {} | {}", labels[0], labels[1], observe(&sim))
}

fn start_delayed(
    sim: &Simulation,
    node: &Node,
    operation: Operation,
    later: Duration,
) -> tokio::task::JoinHandle<String> {
    let operation_future = operation.start(sim, node);
    node.spawn(async move {
        sleep(later).await;
        operation_future.await
    })
}

/// Every pair of these operations, including each with itself.
fn pairs(acts: &[Operation]) -> impl Iterator<Item = [Operation; 2]> {
    let index_pairs =
        (0..acts.len()).flat_map(|first| (first..acts.len()).map(move |second| [first, second]));
    index_pairs.map(|indexes| indexes.map(|index| acts[index]))
}

fn seeds() -> u64 {
    std::env::var("VOUCHSAFE_RACE_SEEDS").map_or(SEEDS, |text| text.parse().expect("a number"))
}

simulation_tests! {
    async fn concurrent_operations_have_only_allowed_outcomes() {
        let mut allowed = allowed_outcomes();
        for (state, acts) in RACES {
            for pair in pairs(acts) {
                for nodes in [1, 2] {
                    let name = format!("{state:?}: {:?} and {:?}, nodes: {nodes}", pair[0], pair[1]);
                    let mut outcomes = BTreeSet::new();
                    for seed in 0..seeds() {
                        outcomes.insert(race(state, pair, nodes, seed).await);
                    }
                    assert_eq!(outcomes, allowed.remove(&name).unwrap_or_default(), "{name}");
                }
            }
        }
        assert_eq!(allowed, Outcomes::new(), "allowed outcomes of unknown races");
    }

    async fn guard_removed_allows_other_outcomes() {
        for seed in 0..SEEDS {
            let mut sim = Simulation::new();
            sim.db = MemoryDatabase::without(Guard::Retrieved);
            let race = race_in(sim, InitialState::Delivered, [Operation::Cancel, Operation::Retrieve], 1, seed);
            if AssertUnwindSafe(race).catch_unwind().await.is_err() {
                return;
            }
        }
        panic!("retrieved codes returned to stock undetected");
    }

    async fn seed_reproduces_the_outcome() {
        for seed in 0..20 {
            let [first, second] = [(); 2].map(|()| race(InitialState::AwaitingApproval(2), [Operation::Cancel, Operation::Approve], 2, seed));
            assert_eq!(first.await, second.await, "seed {seed}");
        }
    }
}
