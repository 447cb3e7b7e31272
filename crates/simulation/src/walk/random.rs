//! Random walks through the simulation: a seed decides the sequence of requests, decisions, faults, panics
//! and restarts.
//!
//! After each step the invariants hold and no partner has two responses under one key. When nothing is in
//! flight, no actor holds anything and each agrees with the database. One seed reproduces one run.

mod changes;
mod epoch;
mod rng;
mod steps;

pub use self::rng::REPLIES;
pub use self::steps::STEPS;

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::task::JoinHandle;
use vouchsafe_actors::flows::{TopUp, TopUpError, TopUpResult};
use vouchsafe_domain::ids::{PartnerId, TransactionId, WebhookId};

use self::rng::WalkRng;
use super::node::await_reply;
use super::vendors::VendorFault;
use super::{Node, OrderReply, OrderRequest, ResponseHistory, Simulation, build};
use crate::{FaultKind, FaultRates};

/// Partners with their initial balances: ample, sometimes sufficient, small.
const PARTNERS: [(PartnerId, i64); 3] = [
    (build::partner(1), 50_000_000),
    (build::partner(2), 600_000),
    (build::partner(3), 12_000),
];

/// Steps between two checkpoints at which nothing is in flight.
const STEPS_PER_CHECKPOINT: u32 = 25;

/// Maximum simulated time for everything to settle without faults.
const MINUTES_TO_SETTLE: u32 = 15;

/// Checkpoints before all keys expire.
const CHECKPOINTS_PER_EPOCH: u32 = 4;

/// Rate of each kind of fault, per thousand calls, and maximum delay: longer than the decision timeout.
const FAULTS_PER_MILLE: u32 = 25;
const MAX_DELAY: Duration = Duration::from_secs(4);

/// Report of a walk.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WalkReport {
    /// Log of the walk; identical for the same seed.
    pub lines: Vec<String>,
    /// Count of each kind of store fault.
    pub faults: BTreeMap<FaultKind, u64>,
    /// Count of each kind of step.
    pub steps: BTreeMap<&'static str, u64>,
    /// Count of each kind of reply.
    pub replies: BTreeMap<&'static str, u64>,
    /// Count of each kind of vendor fault.
    pub vendor_faults: BTreeMap<VendorFault, u64>,
}

/// A call in flight.
enum Call {
    Order(OrderRequest, JoinHandle<OrderReply>),
    TopUp(TopUp, JoinHandle<Result<TopUpResult, TopUpError>>),
    /// A change to an existing order or payout, with its description; yields a label of the outcome.
    Change(String, JoinHandle<&'static str>),
}

impl Call {
    fn is_finished(&self) -> bool {
        match self {
            Self::Order(_, task) => task.is_finished(),
            Self::TopUp(_, task) => task.is_finished(),
            Self::Change(_, task) => task.is_finished(),
        }
    }
}

/// State of a walk.
struct Walk {
    simulation: Simulation,
    rng: WalkRng,
    /// Nodes `one` and `two`; `None` while crashed.
    nodes: [Option<Node>; 2],
    calls: Vec<Call>,
    history: ResponseHistory,
    posted: BTreeMap<String, TransactionId>,
    epoch: u32,
    keys: u32,
    report: WalkReport,
}

const NAMES: [&str; 2] = ["one", "two"];

/// Runs a walk of this many steps.
///
/// # Panics
/// If an invariant is violated, with the log of the last steps.
pub async fn random_walk(seed: u64, steps: u32) -> WalkReport {
    let mut walk = Walk::begin(seed).await;
    for step in 1..=steps {
        walk.step().await;
        walk.check().await;
        if step % STEPS_PER_CHECKPOINT == 0 {
            walk.checkpoint().await;
        }
        if step % (STEPS_PER_CHECKPOINT * CHECKPOINTS_PER_EPOCH) == 0 {
            walk.end_epoch().await;
        }
    }
    walk.checkpoint().await;
    walk.end_epoch().await;
    walk.sell_out().await;
    walk.report.faults = walk.simulation.db.fault_counts();
    walk.report.vendor_faults = walk.simulation.vendors.fault_counts();
    walk.report
}

impl Walk {
    async fn begin(seed: u64) -> Self {
        let simulation = Simulation::new();
        for (partner_id, amount) in PARTNERS {
            simulation.top_up(partner_id, amount).await;
            // The id of the partner, because one seed must reproduce one run.
            let webhook_id = WebhookId::from_uuid(partner_id.as_uuid());
            simulation.db.add_endpoint(partner_id, webhook_id);
        }
        let nodes = [
            Some(simulation.start(NAMES[0]).await),
            Some(simulation.start(NAMES[1]).await),
        ];
        nodes.iter().flatten().for_each(Node::start_background);
        let mut walk = Self {
            simulation,
            rng: WalkRng::new(seed),
            nodes,
            calls: Vec::new(),
            history: ResponseHistory::default(),
            posted: BTreeMap::new(),
            epoch: 0,
            keys: 0,
            report: WalkReport::default(),
        };
        walk.inject_faults();
        walk
    }

    /// Enables random faults of the store, the vendors and the receivers.
    fn inject_faults(&mut self) {
        let seed = self.rng.seed();
        self.simulation
            .db
            .fail_randomly(seed, FaultRates::uniform(FAULTS_PER_MILLE, MAX_DELAY));
        let seed = self.rng.seed();
        self.simulation.vendors.inject_faults(seed);
        let seed = self.rng.seed();
        self.simulation.receivers.inject_faults(seed);
    }

    fn heal(&mut self) {
        self.simulation.db.heal();
        self.simulation.vendors.heal();
        self.simulation.receivers.heal();
    }

    fn note(&mut self, line: String) {
        self.report.lines.push(line);
    }

    /// Collects finished calls and checks the invariants that hold at any time.
    async fn check(&mut self) {
        let (finished, open) = std::mem::take(&mut self.calls)
            .into_iter()
            .partition(Call::is_finished);
        self.calls = open;
        let finished: Vec<Call> = finished;
        for call in finished {
            self.collect(call).await;
        }
        self.assert_empty("invariants", self.simulation.db.invariants());
        self.assert_empty("purchases", self.simulation.vendors.violations());
        self.assert_empty("replies", self.history.violations());
    }

    fn assert_empty(&self, description: &str, violations: Vec<String>) {
        let before = self.report.lines.len().saturating_sub(60);
        let lines = self.report.lines[before..].join("\n");
        assert!(violations.is_empty(), "{lines}\n{description}: {violations:#?}");
    }

    async fn collect(&mut self, call: Call) {
        match call {
            Call::Order(request, task) => {
                let reply = await_reply(task).await;
                self.history.record(&request, &reply);
                self.count_reply(
                    rng::reply_label(&reply),
                    &format!("{} {:?}", request.key, request.lines),
                );
            }
            Call::TopUp(command, task) => match task.await {
                Ok(result) => self.collect_top_up(&command, result),
                Err(_) => self.count_reply("top-up cancelled", &command.reference),
            },
            Call::Change(description, task) => match task.await {
                Ok(name) => self.count_reply(name, &description),
                Err(error) if error.is_cancelled() => self.count_reply("disconnected", &description),
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
        }
    }

    fn collect_top_up(&mut self, command: &TopUp, result: Result<TopUpResult, TopUpError>) {
        let name = rng::top_up_label(&result);
        if let Ok(result) = result {
            let first = self
                .posted
                .entry(command.reference.clone())
                .or_insert(result.transaction_id);
            assert_eq!(
                *first, result.transaction_id,
                "{} is posted once",
                command.reference
            );
        }
        self.count_reply(name, &command.reference);
    }

    fn count_reply(&mut self, name: &'static str, description: &str) {
        *self.report.replies.entry(name).or_default() += 1;
        self.note(format!("    {description}: {name}"));
    }

    /// Waits until everything has settled: a crashed node's claim lasts two minutes, and an old purchase is
    /// polled every five.
    async fn settle(&mut self) {
        // Other nodes can claim a crashed node's stock after its lease.
        for (name, _) in NAMES.iter().zip(&self.nodes).filter(|(_, node)| node.is_none()) {
            self.simulation.db.expire_lease(name);
        }
        for _ in 0..MINUTES_TO_SETTLE {
            tokio::time::sleep(Duration::from_secs(60)).await;
            if self.simulation.vendors.unfinished().is_empty() {
                return;
            }
        }
        self.assert_empty("unfinished", self.simulation.vendors.unfinished());
    }

    /// Lets everything settle without faults and checks the invariants that hold when nothing is in flight.
    async fn checkpoint(&mut self) {
        self.heal();
        self.settle().await;
        self.check().await;
        assert!(self.calls.is_empty(), "a call did not finish");
        for node in self.nodes.iter().flatten() {
            self.assert_empty(node.name, node.leaks().await);
        }
        self.note("checkpoint".to_owned());
        self.inject_faults();
    }
}
