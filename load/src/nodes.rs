//! What do two nodes give on one database, and does the model of them say so before? One node with few and with many
//! connections, then two that share the many, in turns on one server; the second node stands by meanwhile.
//!
//! Each node has a partner of its own, and both sell one SKU. Rule: the model is fitted to one node alone.

mod model;
mod report;

use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

pub use self::model::{Bounds, Model, Predicted, Seen, Stations};
use crate::audit::{Check, verified};
use crate::compare::numbers::Spread;
use crate::compare::proof::Proof;
use crate::compare::turn::{Load, Target, Turn, at_once, turn};
use crate::compare::upkeep;
use crate::costs::{Costs, Who};
use crate::database::{Database, DatabaseFacts};
use crate::machine::Machine;
use crate::scenario::Pace;
use crate::stand::Stand;
use crate::stand::furnish::{Furnishing, furnish, product_id};
use crate::stand::postgres::SERVICE;

/// What each partner has to spend. USD.
const USD: u64 = 900_000_000;

/// How it is measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
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

impl Plan<'_> {
    fn load(&self, connections: usize) -> Load {
        Load {
            pace: Pace::Closed { connections },
            threads: self.threads,
            warm_up_s: self.warm_up_s,
            seconds: self.seconds,
        }
    }
}

/// One kind of turn, round by round; a round has a turn for each node.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
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
    pub rows: [Row; 3],
    /// Whether the invariants hold at the end.
    pub verified: Check,
    pub machine: Machine,
    pub database: DatabaseFacts,
}

impl NodesReport {
    /// Whether every figure counts.
    #[must_use]
    pub fn passed(&self) -> bool {
        let mut turns = self.rows.iter().flat_map(|row| row.rounds.iter().flatten());
        self.verified.passed && turns.all(|turn| turn.counted().is_some())
    }

    /// The model of one node's medians; `None` where they were not measured.
    #[must_use]
    pub fn model(&self) -> Option<Model> {
        let [few, many, _] = &self.rows;
        Model::through(few.seen()?, many.seen()?)
    }

    /// What one node does with many connections, by kinds of threads.
    #[must_use]
    pub fn stations(&self) -> Option<Stations> {
        let [_, many, _] = &self.rows;
        many.stations()
    }
}

impl Row {
    /// Orders a second of all nodes, in each round.
    fn orders_per_s(&self) -> impl Iterator<Item = f64> {
        self.rounds
            .iter()
            .map(|turns| turns.iter().map(|turn| turn.orders_per_s).sum())
    }

    /// What one thread of each kind does for an order.
    fn stations(&self) -> Option<Stations> {
        let busiest = |who| self.cost(|costs| costs.busiest_us(who));
        let of = |who| self.cost(|costs| costs.cpu_us(who));
        let seen = self.seen()?;
        Some(Stations {
            serving_us: busiest(Who::Service)?,
            lane_us: busiest(Who::Postgres)?,
            all_us: of(Who::Service)? + of(Who::Postgres)?,
            busy: seen.busy(),
        })
    }

    /// A figure of what orders cost, in the median.
    fn cost(&self, figure: impl Fn(&Costs) -> Option<f64>) -> Option<f64> {
        let costs = self
            .rounds
            .iter()
            .filter_map(|turns| turns.first()?.costs.as_ref());
        let figures = costs.filter_map(figure);
        Spread::of(figures).map(|spread| spread.median)
    }

    fn seen(&self) -> Option<Seen> {
        let generator_us = self.cost(|costs| costs.cpu_us(Who::Generator))?;
        // By the generator in each round, so that what the machine did in it falls out.
        let at_its_speed = |figure: fn(&Costs) -> Option<f64>| {
            let share = self.cost(|costs| Some(figure(costs)? / costs.cpu_us(Who::Generator)?));
            share.map(|share| share * generator_us)
        };
        Some(Seen {
            connections: self.connections as f64,
            batch: self.cost(|costs| costs.records_per_batch)?,
            busy_us: at_its_speed(busy_us)?,
            idle_us: at_its_speed(|costs| costs.idle_us)?,
            generator_us,
        })
    }
}

/// Time of the cores that somebody had.
fn busy_us(costs: &Costs) -> Option<f64> {
    let known = [Who::Service, Who::Postgres, Who::Generator].map(|who| costs.cpu_us(who));
    let known: Option<Vec<f64>> = known.into_iter().collect();
    Some(known?.into_iter().sum::<f64>() + costs.others_us.unwrap_or_default())
}

/// Measures; `say` is told of each turn.
///
/// # Errors
/// When a node could not be started, loaded or audited at all.
pub async fn measure(plan: &Plan<'_>, say: &mut impl FnMut(&str)) -> anyhow::Result<NodesReport> {
    let machine = Machine::before();
    let mut stand = Stand::start(plan.service).await?;
    let furnishing = Furnishing::even(1, plan.stock, 2, USD);
    let buyers = furnish(stand.operator(), &furnishing).await?;
    let superuser = stand.postgres()?.superuser();
    upkeep::by_hand(&superuser).await?;
    let database = superuser.database(SERVICE);
    // It knows the partners that were there before it.
    let neighbour = stand.neighbour().await?;
    let subject = stand.subject()?;
    let urls = [stand.base_url(), neighbour.base_url()];
    let targets: Vec<_> = urls
        .into_iter()
        .zip(buyers)
        .map(|(url, buyer)| Target {
            url,
            credentials: buyer.credentials,
            product: product_id(0),
            proof: Proof::Wire,
            subject: subject.clone(),
        })
        .collect();
    let mut both = subject;
    both.pids.push(neighbour.pid());
    let row = |nodes, connections| Row {
        nodes,
        connections,
        rounds: Vec::with_capacity(plan.rounds),
    };
    let mut rows = [row(1, plan.few), row(1, plan.many), row(2, plan.many.div_ceil(2))];
    for round in 1..=plan.rounds {
        for row in &mut rows {
            let load = plan.load(row.connections);
            upkeep::before_a_turn(&database).await?;
            let turns = match row.nodes {
                1 => vec![turn(targets.first().context("no node")?, load).await?],
                _ => at_once(&targets, both.clone(), load).await?,
            };
            let orders_per_s: f64 = turns.iter().map(|turn| turn.orders_per_s).sum();
            let (nodes, pace) = (row.nodes, load.pace);
            say(&format!(
                "round {round}, nodes: {nodes}, each {pace}: {orders_per_s:.0} orders/s"
            ));
            row.rounds.push(turns);
        }
    }
    let database = Database::connect_with(&stand.postgres()?.service())
        .await?
        .facts()
        .await?;
    let report = NodesReport {
        rows,
        verified: verified(stand.program(), &stand.data_dir()),
        machine: machine.after(),
        database,
    };
    neighbour.stop().context("ending the second node")?;
    stand.stop().context("ending the first node")?;
    Ok(report)
}
