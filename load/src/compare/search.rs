//! Which peer is the best one? Every shape with every size of pool, in turns, each on a database of its own that is as full
//! as the others; the comparison is then with the best.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::statistics::{Spread, index_of_max};
use super::audit_method::AuditMethod;
use super::turn::{LoadSettings, Target, Turn, run_turn};
use crate::database::{DatabaseInspector, DatabaseFacts};
use crate::machine::Machine;
use crate::peer::postgres::TemporaryPostgres;
use crate::peer::process::{PeerProcess, PeerOptions};
use crate::peer::schema::create_database;
use crate::peer::{PeerMode, TransactionShape};
use crate::resource_monitor::MonitorTarget;

/// How far below the best a peer may lie and still be as good, since turns lie so far apart. Of one.
pub const TIE_RATIO: f64 = 0.9;

const PRODUCT: &str = "peer-instant";

/// What is searched.
#[derive(Clone, Debug)]
pub struct PeerSearch<'a> {
    /// The program of the peer.
    pub program: &'a Path,
    /// A directory for credentials.
    pub directory: &'a Path,
    /// Shapes, each with every pool.
    pub shapes: &'a [TransactionShape],
    pub pools: &'a [u32],
    /// How each is loaded, in each round; one entry a column.
    pub loads: &'a [LoadSettings],
    pub rounds: usize,
    /// Vouchers in each database.
    pub stock: u64,
}

/// A shape with a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PeerVariant {
    /// How a transaction is put to the database.
    pub shape: TransactionShape,
    pub pool: u32,
}

impl fmt::Display for PeerVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, pool {}", self.shape.name(), self.pool)
    }
}

/// What a variant came to, over the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct VariantResult {
    pub variant: PeerVariant,
    /// Its turns, for each load in each round.
    pub turns: Vec<Vec<Turn>>,
}

impl VariantResult {
    /// Orders/s at the load with this index, of the turns that count.
    #[must_use]
    pub fn rate_at(&self, load: usize) -> Option<Spread> {
        let turns = self.turns.get(load)?;
        Spread::from_values(turns.iter().filter_map(Turn::counted_rate))
    }

    /// The mean of the medians over all loads; `None` if one has no figure.
    #[must_use]
    pub fn mean_rate(&self) -> Option<f64> {
        let medians: Option<Vec<f64>> = (0..self.turns.len())
            .map(|load| Some(self.rate_at(load)?.median))
            .collect();
        let medians = medians.filter(|medians| !medians.is_empty())?;
        Some(medians.iter().sum::<f64>() / medians.len() as f64)
    }
}

/// The whole search.
#[derive(Clone, Debug, Serialize)]
pub struct PeerSearchReport {
    /// How each was loaded.
    pub loads: Vec<LoadSettings>,
    pub found: Vec<VariantResult>,
    /// The index of the best.
    pub best: Option<usize>,
    /// The database of one of them, at the end.
    pub database: DatabaseFacts,
    pub machine: Machine,
}

/// Searches; `say` is told of each turn.
///
/// # Errors
/// When a peer could not be started, loaded or audited at all.
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
    let mut found: Vec<VariantResult> = variants
        .map(|variant| VariantResult {
            variant,
            turns: vec![Vec::new(); search.loads.len()],
        })
        .collect();
    for round in 0..search.rounds {
        for (index, found) in found.iter_mut().enumerate() {
            for (load, turns) in search.loads.iter().zip(&mut found.turns) {
                let name = format!("search_{index}");
                let turn = measured(server, search, found.variant, &name, *load).await?;
                say(&format!(
                    "round {}, {}, {}: {:.0} orders/s",
                    round + 1,
                    found.variant,
                    load.pace,
                    turn.orders_per_s
                ));
                turns.push(turn);
            }
        }
    }
    let overall: Vec<_> = found.iter().map(VariantResult::mean_rate).collect();
    let database = server.options().database("search_0");
    Ok(PeerSearchReport {
        loads: search.loads.to_vec(),
        best: index_of_max(&overall),
        found,
        database: DatabaseInspector::connect_with(&database).await?.read_facts().await?,
        machine: machine.observe_after(),
    })
}

async fn measured(
    server: &TemporaryPostgres,
    search: &PeerSearch<'_>,
    variant: PeerVariant,
    name: &str,
    load: LoadSettings,
) -> anyhow::Result<Turn> {
    // A new one for each turn: no variant is measured on a table that another, or an earlier turn, has filled.
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
    /// The best of those with no more than so many connections, if it is as good as the best of all.
    #[must_use]
    pub fn best_within(&self, connections: u32) -> Option<PeerVariant> {
        let top = self.best.and_then(|index| self.found.get(index)?.mean_rate())?;
        let small = |found: &VariantResult| found.mean_rate().filter(|_| found.variant.pool <= connections);
        let small: Vec<_> = self.found.iter().map(small).collect();
        let best = index_of_max(&small)?;
        (small[best]? >= top * TIE_RATIO).then(|| self.found[best].variant)
    }

    /// The variants with their figures, the best and what is as good marked.
    #[must_use]
    pub const fn ranking(&self) -> Ranking<'_> {
        Ranking(self)
    }
}

/// The variants of a search with their figures.
#[derive(Debug)]
pub struct Ranking<'a>(&'a PeerSearchReport);

impl fmt::Display for Ranking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        write!(f, "orders/s, median (least to greatest)\n{:<24}", "")?;
        for load in &report.loads {
            write!(f, "{:>28}", format!("{} connections", load.pace.connections()))?;
        }
        writeln!(f)?;
        let top = report.best.and_then(|index| report.found.get(index)?.mean_rate());
        for (index, found) in report.found.iter().enumerate() {
            write!(f, "{:<24}", found.variant.to_string())?;
            for load in 0..report.loads.len() {
                let figure = found
                    .rate_at(load)
                    .map_or_else(|| "does not count".to_owned(), |spread| spread.to_string());
                write!(f, "{figure:>28}")?;
            }
            let as_good = found
                .mean_rate()
                .zip(top)
                .is_some_and(|(own, top)| own >= top * TIE_RATIO);
            let mark = match (report.best == Some(index), as_good) {
                (true, _) => "  best",
                (false, true) => "  within 10 %",
                (false, false) => "",
            };
            writeln!(f, "{mark}")?;
            for reason in found.turns.iter().flatten().filter_map(Turn::rejection_reason) {
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
