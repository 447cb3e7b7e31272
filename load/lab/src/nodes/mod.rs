//! Throughput of two nodes on one database, compared with a model fitted to one node. Each round loads one node with
//! few connections, one node with many, and two nodes that share the many, on one server; the second node idles in
//! the first two turns.
//!
//! Each node has a separate partner; both sell one SKU. Rule: the model uses measurements of one node only.

mod model;
mod report;

use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use vouchsafe_load::audit::{Check, check_invariants};
use vouchsafe_load::deployment::TestDeployment;
use vouchsafe_load::deployment::postgres::SERVICE_DATABASE;
use vouchsafe_load::deployment::seed::{SeedData, product_id, seed};
use vouchsafe_load::resources::conditions::Conditions;
use vouchsafe_load::resources::costs::OrderCosts;
use vouchsafe_load::resources::database::DatabaseSettings;
use vouchsafe_load::resources::proc::Component;
use vouchsafe_load::statistics::Spread;
use vouchsafe_load::traffic::pace::Pace;

use self::model::{NodeObservation, StationCosts, ThroughputModel};
use crate::compare::audit_method::AuditMethod;
use crate::compare::maintenance;
use crate::compare::turn::{LoadSettings, Target, Turn, run_concurrent_turns, run_turn};

/// Wallet balance of each partner, in USD.
const USD: u64 = 900_000_000;

/// Parameters of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct NodesPlan<'a> {
    pub service: &'a Path,
    /// Connections of the first turn (one node).
    pub few: usize,
    /// Connections of the second turn (one node), and of both nodes together.
    pub many: usize,
    pub warm_up_s: u64,
    pub seconds: u64,
    pub rounds: usize,
    pub stock: u64,
}

impl NodesPlan<'_> {
    fn load(&self, connections: usize) -> LoadSettings {
        LoadSettings {
            pace: Pace::Closed { connections },
            warm_up_s: self.warm_up_s,
            seconds: self.seconds,
        }
    }
}

/// All rounds of one kind of turn; each round has one turn per node.
#[derive(Clone, Debug, Serialize)]
pub struct NodeRow {
    pub nodes: usize,
    pub connections: usize,
    pub rounds: Vec<Vec<Turn>>,
}

/// Results of the measurement.
#[derive(Clone, Debug, Serialize)]
pub struct NodesReport {
    /// One node with few connections, one node with many, two nodes.
    pub rows: [NodeRow; 3],
    pub verified: Check,
    pub conditions: Conditions,
}

impl NodesReport {
    #[must_use]
    pub fn has_passed(&self) -> bool {
        let mut turns = self.rows.iter().flat_map(|row| row.rounds.iter().flatten());
        self.verified.passed && turns.all(|turn| turn.counted_rate().is_some())
    }

    /// Fits the model to the medians of one node; `None` if values are missing.
    fn model(&self) -> Option<ThroughputModel> {
        let [few, many, _] = &self.rows;
        ThroughputModel::fit(few.observe()?, many.observe()?)
    }

    /// Cost per order and thread kind of one node with many connections.
    fn stations(&self) -> Option<StationCosts> {
        let [_, many, _] = &self.rows;
        many.stations()
    }
}

impl NodeRow {
    /// Orders per second of all nodes, by round.
    fn orders_per_s(&self) -> impl Iterator<Item = f64> {
        self.rounds
            .iter()
            .map(|turns| turns.iter().map(|turn| turn.orders_per_s).sum())
    }

    /// Cost per order of each thread kind.
    fn stations(&self) -> Option<StationCosts> {
        let busiest_cost = |component| self.median_cost(|costs| costs.busiest_us(component));
        let total_cost = |component| self.median_cost(|costs| costs.cpu_us(component));
        let observation = self.observe()?;
        Some(StationCosts {
            serving_us: busiest_cost(Component::Service)?,
            lane_us: busiest_cost(Component::Postgres)?,
            all_us: total_cost(Component::Service)? + total_cost(Component::Postgres)?,
            busy: observation.utilization(),
        })
    }

    /// Median of one cost metric over the rounds.
    fn median_cost(&self, metric: impl Fn(&OrderCosts) -> Option<f64>) -> Option<f64> {
        let costs = self
            .rounds
            .iter()
            .filter_map(|turns| turns.first()?.costs.as_ref());
        let figures = costs.filter_map(metric);
        Spread::from_values(figures).map(|spread| spread.median)
    }

    fn observe(&self) -> Option<NodeObservation> {
        let generator_us = self.median_cost(|costs| costs.cpu_us(Component::Generator))?;
        // Relative to the generator's cost in each round, which cancels the speed of the machine.
        let normalized = |metric: fn(&OrderCosts) -> Option<f64>| {
            let ratio = self.median_cost(|costs| Some(metric(costs)? / costs.cpu_us(Component::Generator)?));
            ratio.map(|ratio| ratio * generator_us)
        };
        Some(NodeObservation {
            connections: self.connections as f64,
            batch: self.median_cost(|costs| costs.records_per_batch)?,
            busy_us: normalized(busy_us)?,
            idle_us: normalized(|costs| costs.idle_us)?,
            generator_us,
        })
    }
}

/// CPU time of all processes, in microseconds per order.
fn busy_us(costs: &OrderCosts) -> Option<f64> {
    let components = [Component::Service, Component::Postgres, Component::Generator]
        .map(|component| costs.cpu_us(component));
    let components: Option<Vec<f64>> = components.into_iter().collect();
    Some(components?.into_iter().sum::<f64>() + costs.other_processes_us.unwrap_or_default())
}

/// Runs the measurement; `report_progress` receives one line per turn.
///
/// # Errors
/// If a node cannot be started, loaded or audited.
pub async fn measure_nodes(
    plan: &NodesPlan<'_>,
    report_progress: &mut impl FnMut(&str),
) -> anyhow::Result<NodesReport> {
    let mut deployment = TestDeployment::start(plan.service).await?;
    let conditions = Conditions::observe(Some(plan.service), Some(deployment.directory()));
    let seed_data = SeedData::even(1, plan.stock, 2, USD);
    let partners = seed(deployment.operator(), &seed_data).await?;
    let superuser = deployment.postgres()?.superuser_options();
    maintenance::disable_autovacuum(&superuser).await?;
    let database = superuser.database(SERVICE_DATABASE);
    // A node reads the partners at its start.
    let second_node = deployment.start_second_node().await?;
    let subject = deployment.monitor_target()?;
    let urls = [deployment.base_url(), second_node.base_url()];
    let targets: Vec<_> = urls
        .into_iter()
        .zip(partners)
        .map(|(url, partner)| Target {
            url,
            credentials: partner.credentials,
            product: product_id(0),
            audit_method: AuditMethod::Api,
            monitored: subject.clone(),
        })
        .collect();
    let mut both = subject;
    both.pids.push(second_node.pid());
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
                1 => vec![run_turn(targets.first().context("no node is running")?, load).await?],
                _ => run_concurrent_turns(&targets, both.clone(), load).await?,
            };
            let orders_per_s: f64 = turns.iter().map(|turn| turn.orders_per_s).sum();
            let (nodes, pace) = (row.nodes, load.pace);
            report_progress(&format!(
                "round {round}, nodes: {nodes}, each {pace}: {orders_per_s:.0} orders/s"
            ));
            row.rounds.push(turns);
        }
    }
    let report = NodesReport {
        rows,
        verified: check_invariants(deployment.program(), &deployment.data_dir()),
        conditions: conditions.completed(Some(DatabaseSettings::read(&database).await?)),
    };
    second_node.stop().context("stopping the second node")?;
    deployment.stop().context("stopping the first node")?;
    Ok(report)
}
