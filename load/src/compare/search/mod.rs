//! Search for the best peer: every transaction shape with every pool size, in turns, each on a new database with the
//! same stock.

use std::fmt;
use std::path::Path;

use serde::Serialize;
use vouchsafe_peer::postgres::TemporaryPostgres;
use vouchsafe_peer::process::{PeerOptions, PeerProcess};
use vouchsafe_peer::schema::create_database;
use vouchsafe_peer::{PeerMode, TransactionShape};

use super::audit_method::AuditMethod;
use super::statistics::{Spread, index_of_max};
use super::turn::{LoadSettings, Target, Turn, run_turn};
use crate::resources::MonitorTarget;
use crate::resources::database::{DatabaseFacts, DatabaseInspector};
use crate::resources::machine::Machine;

/// A peer with at least this share of the best rate counts as equal, given the variation between turns.
pub const TIE_RATIO: f64 = 0.9;

const PRODUCT: &str = "peer-instant";

/// Parameters of a search.
#[derive(Clone, Debug)]
pub struct PeerSearch<'a> {
    pub program: &'a Path,
    /// Directory for credential files.
    pub directory: &'a Path,
    /// Transaction shapes; each is combined with every pool size.
    pub shapes: &'a [TransactionShape],
    pub pools: &'a [u32],
    /// Loads of each round, one column each.
    pub loads: &'a [LoadSettings],
    pub rounds: usize,
    pub stock: u64,
}

/// Transaction shape and pool size of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PeerVariant {
    pub shape: TransactionShape,
    pub pool: u32,
}

impl fmt::Display for PeerVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, pool {}", self.shape.name(), self.pool)
    }
}

/// Turns of one variant.
#[derive(Clone, Debug, Serialize)]
pub struct VariantResult {
    pub variant: PeerVariant,
    /// By load, then by round.
    pub turns: Vec<Vec<Turn>>,
}

impl VariantResult {
    /// Orders/s under the load with this index, of the turns that count.
    #[must_use]
    pub fn rate_at(&self, load: usize) -> Option<Spread> {
        let turns = self.turns.get(load)?;
        Spread::from_values(turns.iter().filter_map(Turn::counted_rate))
    }

    /// Mean of the medians over all loads; `None` if one is missing.
    #[must_use]
    pub fn mean_rate(&self) -> Option<f64> {
        let medians: Option<Vec<f64>> = (0..self.turns.len())
            .map(|load| Some(self.rate_at(load)?.median))
            .collect();
        let medians = medians.filter(|medians| !medians.is_empty())?;
        Some(medians.iter().sum::<f64>() / medians.len() as f64)
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct PeerSearchReport {
    pub loads: Vec<LoadSettings>,
    #[serde(rename = "found")]
    pub results: Vec<VariantResult>,
    /// Index of the best variant.
    pub best: Option<usize>,
    /// Database of the first variant at the end.
    pub database: DatabaseFacts,
    pub machine: Machine,
}

/// Runs the search; `say` receives one line per turn.
///
/// # Errors
/// If a peer cannot be started, loaded or audited.
pub async fn search(
    server: &TemporaryPostgres,
    search: &PeerSearch<'_>,
    say: &mut impl FnMut(&str),
) -> anyhow::Result<PeerSearchReport> {
    let machine = Machine::observe_before();
    let variants = search.shapes.iter().flat_map(|shape| {
        search.pools.iter().map(|pool| PeerVariant {
            shape: *shape,
            pool: *pool,
        })
    });
    let mut results: Vec<VariantResult> = variants
        .map(|variant| VariantResult {
            variant,
            turns: vec![Vec::new(); search.loads.len()],
        })
        .collect();
    for round in 0..search.rounds {
        for (index, result) in results.iter_mut().enumerate() {
            for (load, turns) in search.loads.iter().zip(&mut result.turns) {
                let name = format!("search_{index}");
                let turn = measure_variant(server, search, result.variant, &name, *load).await?;
                say(&format!(
                    "round {}, {}, {}: {:.0} orders/s",
                    round + 1,
                    result.variant,
                    load.pace,
                    turn.orders_per_s
                ));
                turns.push(turn);
            }
        }
    }
    let overall: Vec<_> = results.iter().map(VariantResult::mean_rate).collect();
    let database = server.options().database("search_0");
    Ok(PeerSearchReport {
        loads: search.loads.to_vec(),
        best: index_of_max(&overall),
        results,
        database: DatabaseInspector::connect_with(&database)
            .await?
            .read_facts()
            .await?,
        machine: machine.observe_after(),
    })
}

async fn measure_variant(
    server: &TemporaryPostgres,
    search: &PeerSearch<'_>,
    variant: PeerVariant,
    name: &str,
    load: LoadSettings,
) -> anyhow::Result<Turn> {
    // A new database for each turn: no variant is measured on tables filled by an earlier turn.
    let database = create_database(&server.options(), name).await?;
    let credentials = search.directory.join("peer-partner.json");
    let process = PeerProcess::start(&PeerOptions {
        program: search.program,
        mode: PeerMode::RowLocks,
        shape: variant.shape,
        pool: variant.pool,
        database: &database,
        credentials: &credentials,
        product: PRODUCT,
        stock: search.stock,
    })?;
    let target = Target {
        url: process.url().to_owned(),
        credentials: process.credentials().clone(),
        product: PRODUCT.to_owned(),
        audit_method: AuditMethod::Api,
        monitored: MonitorTarget {
            pids: vec![process.pid()],
            server: None,
            admin_url: None,
        },
    };
    run_turn(&target, load).await
}

impl PeerSearchReport {
    /// The best variant with at most so many connections, if it is within 10 % of the overall best.
    #[must_use]
    pub fn best_within(&self, connections: u32) -> Option<PeerVariant> {
        let best_rate = self.best.and_then(|index| self.results.get(index)?.mean_rate())?;
        let eligible =
            |result: &VariantResult| result.mean_rate().filter(|_| result.variant.pool <= connections);
        let eligible: Vec<_> = self.results.iter().map(eligible).collect();
        let best = index_of_max(&eligible)?;
        (eligible[best]? >= best_rate * TIE_RATIO).then(|| self.results[best].variant)
    }

    /// All variants with their rates; marks the best and those within 10 %.
    #[must_use]
    pub const fn ranking(&self) -> Ranking<'_> {
        Ranking(self)
    }
}

/// Table of variants and rates.
#[derive(Debug)]
pub struct Ranking<'a>(&'a PeerSearchReport);

impl fmt::Display for Ranking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        write!(f, "orders/s: median (min to max)\n{:<24}", "")?;
        for load in &report.loads {
            write!(f, "{:>28}", format!("{} connections", load.pace.connections()))?;
        }
        writeln!(f)?;
        let best_rate = report
            .best
            .and_then(|index| report.results.get(index)?.mean_rate());
        for (index, result) in report.results.iter().enumerate() {
            write!(f, "{:<24}", result.variant.to_string())?;
            for load in 0..report.loads.len() {
                let figure = result
                    .rate_at(load)
                    .map_or_else(|| "does not count".to_owned(), |spread| spread.to_string());
                write!(f, "{figure:>28}")?;
            }
            let is_equal = result
                .mean_rate()
                .zip(best_rate)
                .is_some_and(|(own, best_rate)| own >= best_rate * TIE_RATIO);
            let mark = match (report.best == Some(index), is_equal) {
                (true, _) => "  best",
                (false, true) => "  within 10 %",
                (false, false) => "",
            };
            writeln!(f, "{mark}")?;
            for reason in result.turns.iter().flatten().filter_map(Turn::rejection_reason) {
                writeln!(f, "  does not count: {reason}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for PeerSearchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}\nmachine: {}\ndatabase\n{}",
            self.ranking(),
            self.machine,
            self.database
        )
    }
}

#[cfg(test)]
mod tests;
