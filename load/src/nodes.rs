//! What do two nodes give on one database, and does the model of them say so before? One node with few and with many
//! connections, then two that share the many, in turns on one server; the second node stands by meanwhile.
//!
//! Each node has a partner of its own, and both sell one SKU. Rule: the model is fitted to one node alone.

mod model;
mod report;

use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

pub use self::model::{Bounds, ThroughputModel, Prediction, NodeObservation, StationCosts};
use crate::audit::{Check, check_invariants};
use crate::compare::statistics::Spread;
use crate::compare::audit_method::AuditMethod;
use crate::compare::turn::{LoadSettings, Target, Turn, run_concurrent_turns, run_turn};
use crate::compare::maintenance;
use crate::costs::{OrderCosts, Component};
use crate::database::{DatabaseInspector, DatabaseFacts};
use crate::machine::Machine;
use crate::scenario::Pace;
use crate::deployment::TestDeployment;
use crate::deployment::seed::{SeedData, seed, product_id};
use crate::deployment::postgres::SERVICE_DATABASE;

/// What each partner has to spend. USD.
const USD: u64 = 900_000_000;

/// How it is measured.
#[derive(Clone, Copy, Debug)]
pub struct NodesPlan<'a> {
    pub service: &'a Path,
    /// Connections of the first turn of one node.
    pub few: usize,
    /// Connections of the second, and of two nodes together.
    pub many: usize,
    /// Generator threads of each node's partner.
    pub threads: usize,
    /// Seconds of each turn before anything is measured.
    pub warm_up_s: u64,
    /// Seconds of each turn that are measured.
    pub seconds: u64,
    pub rounds: usize,
    /// Vouchers of the SKU at the start.
    pub stock: u64,
}

impl NodesPlan<'_> {
    fn load(&self, connections: usize) -> LoadSettings {
        LoadSettings {
            pace: Pace::Closed { connections },
            threads: self.threads,
            warm_up_s: self.warm_up_s,
            seconds: self.seconds,
        }
    }
}

/// One kind of turn, round by round; a round has a turn for each node.
#[derive(Clone, Debug, Serialize)]
pub struct NodeRow {
    /// How many nodes served.
    pub nodes: usize,
    pub connections: usize,
    /// What came of it.
    pub rounds: Vec<Vec<Turn>>,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct NodesReport {
    /// One node with few connections, with many, and two nodes.
    pub rows: [NodeRow; 3],
    /// Whether the invariants hold at the end.
    pub verified: Check,
    pub machine: Machine,
    pub database: DatabaseFacts,
}

impl NodesReport {
    /// Whether every figure counts.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        let mut turns = self.rows.iter().flat_map(|row| row.rounds.iter().flatten());
        self.verified.passed && turns.all(|turn| turn.counted_rate().is_some())
    }

    /// The model of one node's medians; `None` where they were not measured.
    #[must_use]
    pub fn model(&self) -> Option<ThroughputModel> {
        let [few, many, _] = &self.rows;
        ThroughputModel::fit(few.seen()?, many.seen()?)
    }

    /// What one node does with many connections, by kinds of threads.
    #[must_use]
    pub fn stations(&self) -> Option<StationCosts> {
        let [_, many, _] = &self.rows;
        many.stations()
    }
}

impl NodeRow {
    /// Orders a second of all nodes, in each round.
    fn orders_per_s(&self) -> impl Iterator<Item = f64> {
        self.rounds
            .iter()
            .map(|turns| turns.iter().map(|turn| turn.orders_per_s).sum())
    }

    /// What one thread of each kind does for an order.
    fn stations(&self) -> Option<StationCosts> {
        let busiest = |who| self.cost(|costs| costs.busiest_us(who));
        let of = |who| self.cost(|costs| costs.cpu_us(who));
        let seen = self.seen()?;
        Some(StationCosts {
            serving_us: busiest(Component::Service)?,
            lane_us: busiest(Component::Postgres)?,
            all_us: of(Component::Service)? + of(Component::Postgres)?,
            busy: seen.utilization(),
        })
    }

    /// A figure of what orders cost, in the median.
    fn cost(&self, figure: impl Fn(&OrderCosts) -> Option<f64>) -> Option<f64> {
        let costs = self
            .rounds
            .iter()
            .filter_map(|turns| turns.first()?.costs.as_ref());
        let figures = costs.filter_map(figure);
        Spread::from_values(figures).map(|spread| spread.median)
    }

    fn seen(&self) -> Option<NodeObservation> {
        let generator_us = self.cost(|costs| costs.cpu_us(Component::Generator))?;
        // By the generator in each round, so that what the machine did in it falls out.
        let at_its_speed = |figure: fn(&OrderCosts) -> Option<f64>| {
            let share = self.cost(|costs| Some(figure(costs)? / costs.cpu_us(Component::Generator)?));
            share.map(|share| share * generator_us)
        };
        Some(NodeObservation {
            connections: self.connections as f64,
            batch: self.cost(|costs| costs.records_per_batch)?,
            busy_us: at_its_speed(busy_us)?,
            idle_us: at_its_speed(|costs| costs.idle_us)?,
            generator_us,
        })
    }
}

/// Time of the cores that somebody had.
fn busy_us(costs: &OrderCosts) -> Option<f64> {
    let known = [Component::Service, Component::Postgres, Component::Generator].map(|who| costs.cpu_us(who));
    let known: Option<Vec<f64>> = known.into_iter().collect();
    Some(known?.into_iter().sum::<f64>() + costs.others_us.unwrap_or_default())
}

/// Measures; `say` is told of each turn.
///
/// # Errors
/// When a node could not be started, loaded or audited at all.
pub async fn measure_nodes(plan: &NodesPlan<'_>, say: &mut impl FnMut(&str)) -> anyhow::Result<NodesReport> {
    let machine = Machine::observe_before();
    let mut stand = TestDeployment::start(plan.service).await?;
    let furnishing = SeedData::even(1, plan.stock, 2, USD);
    let buyers = seed(stand.operator(), &furnishing).await?;
    let superuser = stand.postgres()?.superuser_options();
    maintenance::disable_autovacuum(&superuser).await?;
    let database = superuser.database(SERVICE_DATABASE);
    // It knows the partners that were there before it.
    let neighbour = stand.start_second_node().await?;
    let subject = stand.monitor_target()?;
    let urls = [stand.base_url(), neighbour.base_url()];
    let targets: Vec<_> = urls
        .into_iter()
        .zip(buyers)
        .map(|(url, buyer)| Target {
            url,
            credentials: buyer.credentials,
            product: product_id(0),
            audit_method: AuditMethod::Api,
            monitored: subject.clone(),
        })
        .collect();
    let mut both = subject;
    both.pids.push(neighbour.pid());
    let row = |nodes, connections| NodeRow {
        nodes,
        connections,
        rounds: Vec::with_capacity(plan.rounds),
    };
    let mut rows = [row(1, plan.few), row(1, plan.many), row(2, plan.many.div_ceil(2))];
    for round in 1..=plan.rounds {
        for row in &mut rows {
            let load = plan.load(row.connections);
            maintenance::vacuum_and_checkpoint(&database).await?;
            let turns = match row.nodes {
                1 => vec![run_turn(targets.first().context("no node")?, load).await?],
                _ => run_concurrent_turns(&targets, both.clone(), load).await?,
            };
            let orders_per_s: f64 = turns.iter().map(|turn| turn.orders_per_s).sum();
            let (nodes, pace) = (row.nodes, load.pace);
            say(&format!(
                "round {round}, nodes: {nodes}, each {pace}: {orders_per_s:.0} orders/s"
            ));
            row.rounds.push(turns);
        }
    }
    let database = DatabaseInspector::connect_with(&stand.postgres()?.service_options())
        .await?
        .read_facts()
        .await?;
    let report = NodesReport {
        rows,
        verified: check_invariants(stand.program(), &stand.data_dir()),
        machine: machine.observe_after(),
        database,
    };
    neighbour.stop().context("ending the second node")?;
    stand.stop().context("ending the first node")?;
    Ok(report)
}
