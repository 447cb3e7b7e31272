//! Comparison of the service with the peer and the floor, in turns on one Postgres server. Ratios are taken
//! within a round, so that other load on the machine affects all contenders.
//!
//! Rule: a turn counts only if its audit passed and every measured order was sold.

mod audit_method;
mod maintenance;
pub mod rounds;

use std::fmt;

use serde::Serialize;

use crate::paired::{FigureVerdict, compare_turns, write_table};
use crate::report::RunReport;
use crate::resources::conditions::Conditions;
use crate::statistics::Spread;
use crate::traffic::pace::{Pace, Spacing};

/// A compared system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contender {
    Service,
    /// One transaction per order with row locks.
    Peer,
    /// Plain batch inserts behind the HTTP stack.
    Floor,
}

/// Sorted by turn in a round. The floor serves orders only, so lives of orders are compared without it.
const CONTENDERS: [Contender; 3] = [Contender::Service, Contender::Peer, Contender::Floor];

impl Contender {
    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Peer => "peer",
            Self::Floor => "floor behind HTTP",
        }
    }
}

/// Load of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LoadSettings {
    pub pace: Pace,
    pub warm_up_s: u64,
    pub seconds: u64,
    /// Whether a connection also reads the codes and then the order, and waits for the order's webhooks,
    /// before it places the next one.
    pub lives: bool,
}

/// Turns of one contender under one load, by round.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    pub contender: Contender,
    pub load: LoadSettings,
    pub turns: Vec<RunReport>,
}

#[derive(Clone, Debug, Serialize)]
pub struct CompareReport {
    pub pool: u32,
    /// Sorted by load, then by turn.
    pub columns: Vec<Column>,
    /// All contenders use the same server.
    pub conditions: Conditions,
}

impl CompareReport {
    #[must_use]
    pub fn has_passed(&self) -> bool {
        let mut turns = self.columns.iter().flat_map(|column| &column.turns);
        turns.all(|turn| turn.audit.has_passed())
    }
}

/// Columns without turns, for each load and contender.
fn empty_columns(loads: &[LoadSettings]) -> Vec<Column> {
    let columns = |load: &LoadSettings| {
        let contenders = CONTENDERS.into_iter();
        let load = *load;
        let contenders = contenders.filter(move |contender| !load.lives || *contender != Contender::Floor);
        contenders.map(move |contender| Column {
            contender,
            load,
            turns: Vec::new(),
        })
    };
    loads.iter().flat_map(columns).collect()
}

/// Open loop at half of the peer's best rate; `None` if no turn of the peer counts.
fn half_peer_rate(columns: &[Column], load: LoadSettings) -> Option<LoadSettings> {
    let peers = columns
        .iter()
        .filter(|column| column.contender == Contender::Peer);
    let median = |column: &Column| {
        let counting = column.turns.iter().filter(|turn| turn.audit.has_passed());
        Some(Spread::from_values(counting.map(|turn| turn.metrics.orders_per_s))?.median)
    };
    let best = Spread::from_values(peers.filter_map(median))?.max;
    let pace = Pace::Open {
        connections: load.pace.connections(),
        per_second: (best / 2.0).round(),
        spacing: Spacing::Poisson,
    };
    Some(LoadSettings { pace, ..load })
}

impl fmt::Display for CompareReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.conditions)?;
        let services = self
            .columns
            .iter()
            .filter(|column| column.contender == Contender::Service);
        for service in services {
            for other in self
                .columns
                .iter()
                .filter(|other| other.load.pace == service.load.pace && other.contender != service.contender)
            {
                writeln!(
                    f,
                    "\n{}{}, {} s: A is the {} (pool {}), B the service",
                    if service.load.lives {
                        "whole lives of orders, "
                    } else {
                        ""
                    },
                    service.load.pace,
                    service.load.seconds,
                    other.contender.name(),
                    self.pool
                )?;
                let rounds: Vec<_> = other
                    .turns
                    .iter()
                    .zip(&service.turns)
                    .map(<[_; 2]>::from)
                    .collect();
                let mut figures = compare_turns(&rounds);
                if other.contender == Contender::Floor {
                    // A bound: the service cannot be better than it.
                    figures
                        .iter_mut()
                        .for_each(|figure| figure.verdict = FigureVerdict::Reported);
                }
                write_table(f, &figures)?;
            }
        }
        for column in &self.columns {
            for turn in &column.turns {
                for check in turn.audit.checks.iter().filter(|check| !check.passed) {
                    let (name, pace) = (column.contender.name(), column.load.pace);
                    writeln!(
                        f,
                        "does not count: {name}, {pace}: {}: {}",
                        check.name, check.detail
                    )?;
                }
            }
        }
        Ok(())
    }
}
