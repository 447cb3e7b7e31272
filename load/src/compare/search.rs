//! Which peer is the best one? Every shape with every size of pool, in turns, each on a database of its own that is as full
//! as the others; the comparison is then with the best.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::numbers::{Spread, best};
use super::proof::Proof;
use super::turn::{Load, Target, Turn, turn};
use crate::database::{Database, DatabaseFacts};
use crate::machine::Machine;
use crate::peer::postgres::Server;
use crate::peer::process::{Process, Start};
use crate::peer::schema::make_database;
use crate::peer::{Mode, Shape};
use crate::watch::Subject;

/// How far below the best a peer may lie and still be as good, since turns lie so far apart. Of one.
pub const AS_GOOD: f64 = 0.9;

const PRODUCT: &str = "peer-instant";

/// What is searched.
#[derive(Clone, Debug)]
pub struct Search<'a> {
    /// The program of the peer.
    pub program: &'a Path,
    /// A directory for credentials.
    pub directory: &'a Path,
    /// Shapes, each with every pool.
    pub shapes: &'a [Shape],
    pub pools: &'a [u32],
    /// How each is loaded, in each round; one entry a column.
    pub loads: &'a [Load],
    pub rounds: usize,
    /// Vouchers in each database.
    pub stock: u64,
}

/// A shape with a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Variant {
    /// How a transaction is put to the database.
    pub shape: Shape,
    pub pool: u32,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, pool {}", self.shape.name(), self.pool)
    }
}

/// What a variant came to, over the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    pub variant: Variant,
    /// Its turns, for each load in each round.
    pub turns: Vec<Vec<Turn>>,
}

impl Found {
    /// Orders/s at the load with this index, of the turns that count.
    #[must_use]
    pub fn at(&self, load: usize) -> Option<Spread> {
        let turns = self.turns.get(load)?;
        Spread::of(turns.iter().filter_map(Turn::counted))
    }

    /// The mean of the medians over all loads; `None` if one has no figure.
    #[must_use]
    pub fn overall(&self) -> Option<f64> {
        let medians: Option<Vec<f64>> = (0..self.turns.len())
            .map(|load| Some(self.at(load)?.median))
            .collect();
        let medians = medians.filter(|medians| !medians.is_empty())?;
        Some(medians.iter().sum::<f64>() / medians.len() as f64)
    }
}

/// The whole search.
#[derive(Clone, Debug, Serialize)]
pub struct SearchReport {
    /// How each was loaded.
    pub loads: Vec<Load>,
    pub found: Vec<Found>,
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
    server: &Server,
    search: &Search<'_>,
    say: &mut impl FnMut(&str),
) -> anyhow::Result<SearchReport> {
    let machine = Machine::before();
    let variants = search.shapes.iter().flat_map(|shape| {
        search.pools.iter().map(|pool| Variant {
            shape: *shape,
            pool: *pool,
        })
    });
    let mut found: Vec<Found> = variants
        .map(|variant| Found {
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
    let overall: Vec<_> = found.iter().map(Found::overall).collect();
    let database = server.options().database("search_0");
    Ok(SearchReport {
        loads: search.loads.to_vec(),
        best: best(&overall),
        found,
        database: Database::connect_with(&database).await?.facts().await?,
        machine: machine.after(),
    })
}

async fn measured(
    server: &Server,
    search: &Search<'_>,
    variant: Variant,
    name: &str,
    load: Load,
) -> anyhow::Result<Turn> {
    // A new one for each turn: no variant is measured on a table that another, or an earlier turn, has filled.
    let database = make_database(&server.options(), name).await?;
    let credentials = search.directory.join("peer-partner.json");
    let process = Process::start(&Start {
        program: search.program,
        mode: Mode::RowLocks,
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
        proof: Proof::Wire,
        subject: Subject {
            pids: vec![process.pid()],
            server: None,
            admin_url: None,
        },
    };
    turn(&target, load).await
}

impl SearchReport {
    /// The best of those with no more than so many connections, if it is as good as the best of all.
    #[must_use]
    pub fn best_within(&self, connections: u32) -> Option<Variant> {
        let top = self.best.and_then(|index| self.found.get(index)?.overall())?;
        let small = |found: &Found| found.overall().filter(|_| found.variant.pool <= connections);
        let small: Vec<_> = self.found.iter().map(small).collect();
        let best = best(&small)?;
        (small[best]? >= top * AS_GOOD).then(|| self.found[best].variant)
    }

    /// The variants with their figures, the best and what is as good marked.
    #[must_use]
    pub const fn ranking(&self) -> Ranking<'_> {
        Ranking(self)
    }
}

/// The variants of a search with their figures.
#[derive(Debug)]
pub struct Ranking<'a>(&'a SearchReport);

impl fmt::Display for Ranking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        write!(f, "orders/s, median (least to greatest)\n{:<24}", "")?;
        for load in &report.loads {
            write!(f, "{:>28}", format!("{} connections", load.pace.connections()))?;
        }
        writeln!(f)?;
        let top = report.best.and_then(|index| report.found.get(index)?.overall());
        for (index, found) in report.found.iter().enumerate() {
            write!(f, "{:<24}", found.variant.to_string())?;
            for load in 0..report.loads.len() {
                let figure = found
                    .at(load)
                    .map_or_else(|| "does not count".to_owned(), |spread| spread.to_string());
                write!(f, "{figure:>28}")?;
            }
            let as_good = found
                .overall()
                .zip(top)
                .is_some_and(|(own, top)| own >= top * AS_GOOD);
            let mark = match (report.best == Some(index), as_good) {
                (true, _) => "  best",
                (false, true) => "  within 10 %",
                (false, false) => "",
            };
            writeln!(f, "{mark}")?;
            for reason in found.turns.iter().flatten().filter_map(Turn::why_not) {
                writeln!(f, "  does not count: {reason}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for SearchReport {
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
