//! Which commands are there? `load floor`, `load search` and `load compare`: each measures in turns, prints a report and
//! writes it as JSON where it is asked to.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use sqlx::postgres::PgConnectOptions;

use super::rounds::{Comparison, compare};
use super::search::{Search, Variant, search};
use super::turn::Load;
use crate::floor::{FloorSearch, floor};
use crate::peer::Shape;
use crate::peer::postgres::{Durability, Server};
use crate::peer::process::Process;
use crate::peer::schema::make_database;
use crate::stand::Stand;

/// `load floor`.
#[derive(Args)]
pub struct FloorArgs {
    /// An empty database to write to; without one, a Postgres is started for it.
    #[arg(long, value_name = "URL")]
    database: Option<PgConnectOptions>,
    #[command(flatten)]
    sizes: FloorSizes,
    /// How often each size is measured.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Write the report as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Args, Clone)]
struct FloorSizes {
    /// Orders of a batch, each size in turn.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 256, 1024, 4096], value_parser = at_least_one)]
    batches: Vec<usize>,
    /// Seconds for each size.
    #[arg(long, default_value_t = 3)]
    floor_seconds: u64,
}

impl FloorSizes {
    fn search(self, rounds: usize) -> FloorSearch {
        FloorSearch {
            batches: self.batches,
            seconds: self.floor_seconds,
            rounds,
        }
    }
}

#[derive(Args)]
struct LoadArgs {
    /// Connections, each with one order open at a time; each number in turn.
    #[arg(long, value_delimiter = ',', default_values_t = [256, 64], value_parser = at_least_one)]
    connections: Vec<usize>,
    /// Generator threads.
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    threads: usize,
    /// Seconds of each turn that are measured.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Seconds of each turn before anything is measured.
    #[arg(long, default_value_t = 3)]
    warmup: u64,
    /// How often everybody has a turn.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Vouchers in each database at its start: enough for what is sold in all turns on it.
    #[arg(long, default_value_t = 200_000)]
    stock: u64,
    /// Write the report as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl LoadArgs {
    fn loads(&self) -> Vec<Load> {
        let load = |connections: &usize| Load {
            connections: *connections,
            threads: self.threads,
            warm_up_s: self.warmup,
            seconds: self.seconds,
        };
        self.connections.iter().map(load).collect()
    }
}

/// `load search`.
#[derive(Args)]
pub struct SearchArgs {
    /// Sizes of the peer's pool, each in turn.
    #[arg(long, value_delimiter = ',', default_values_t = [4, 8, 16, 32, 64])]
    pools: Vec<u32>,
    /// How a transaction is put to the database, each in turn.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Shape::Statements, Shape::Function])]
    shapes: Vec<Shape>,
    #[command(flatten)]
    load: LoadArgs,
}

/// `load compare`.
#[derive(Args)]
pub struct CompareArgs {
    /// The service's program; without it, the one beside this program.
    #[arg(long)]
    service: Option<PathBuf>,
    /// How the peer puts a transaction to the database: what `load search` found.
    #[arg(long, value_enum, default_value = "function")]
    shape: Shape,
    /// Connections of the peer. The service's server takes 64 in all, its own among them.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=40))]
    pool: u32,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    floor: FloorSizes,
}

/// Runs `load floor`.
///
/// # Errors
/// When it could not be run.
pub fn run_floor(args: FloorArgs) -> anyhow::Result<bool> {
    runtime()?.block_on(async {
        let search = args.sizes.search(args.rounds);
        let report = match &args.database {
            Some(database) => floor(database, &search, &mut say).await?,
            None => {
                let server = Server::start(Durability::Durable).await?;
                let database = make_database(&server.options(), "floor").await?;
                floor(&database, &search, &mut say).await?
            }
        };
        publish(&report, args.json.as_deref())?;
        Ok(report.rows.passed)
    })
}

/// Runs `load search`.
///
/// # Errors
/// When it could not be run.
pub fn run_search(args: &SearchArgs) -> anyhow::Result<bool> {
    runtime()?.block_on(async {
        let directory = tempfile::tempdir()?;
        let server = Server::start(Durability::Durable).await?;
        let what = Search {
            program: &Process::program_beside()?,
            directory: directory.path(),
            shapes: &args.shapes,
            pools: &args.pools,
            loads: &args.load.loads(),
            rounds: args.load.rounds,
            stock: args.load.stock,
        };
        let report = search(&server, &what, &mut say).await?;
        publish(&report, args.load.json.as_deref())?;
        Ok(report.best.is_some())
    })
}

/// Runs `load compare`.
///
/// # Errors
/// When it could not be run.
pub fn run_compare(args: CompareArgs) -> anyhow::Result<bool> {
    runtime()?.block_on(async {
        let directory = tempfile::tempdir()?;
        let service = match args.service {
            Some(given) => given,
            None => Stand::program_beside()?,
        };
        let variant = Variant {
            shape: args.shape,
            pool: args.pool,
        };
        let comparison = Comparison {
            service: &service,
            peer: &Process::program_beside()?,
            directory: directory.path(),
            variant,
            loads: args.load.loads(),
            rounds: args.load.rounds,
            stock: args.load.stock,
            floor: args.floor.search(1),
        };
        let report = compare(&comparison, &mut say).await?;
        publish(&report, args.load.json.as_deref())?;
        Ok(report.passed())
    })
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Tells whoever waits; a terminal that is gone does not end a measurement.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn publish(report: &(impl Serialize + Display), json: Option<&Path>) -> anyhow::Result<()> {
    if let Some(path) = json {
        std::fs::write(path, serde_json::to_vec_pretty(report)?).context("writing the JSON report")?;
    }
    write!(std::io::stdout().lock(), "{report}")?;
    Ok(())
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}
