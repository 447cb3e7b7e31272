//! Common arguments and output of the commands that measure in turns.

use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use vouchsafe_load::compare::floor::FloorPlan;
use vouchsafe_load::compare::turn::LoadSettings;
use vouchsafe_load::traffic::pace::Pace;

use super::parse_positive;

/// Load of each turn.
#[derive(Args)]
pub(crate) struct TurnArgs {
    /// Connections, each with one order in flight; one series of turns per number
    #[arg(long, value_delimiter = ',', default_values_t = [256, 64], value_parser = parse_positive)]
    connections: Vec<usize>,
    /// Generator threads
    #[arg(long, default_value_t = 1, value_parser = parse_positive)]
    threads: usize,
    /// Measured seconds per turn
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Warm-up seconds per turn
    #[arg(long, default_value_t = 3)]
    warmup: u64,
    /// Number of rounds
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// Initial vouchers per database; must suffice for all its turns
    #[arg(long, default_value_t = 500_000)]
    pub(crate) stock: u64,
    /// Also write the report as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl TurnArgs {
    /// One closed loop per number of connections.
    pub(crate) fn loads(&self) -> Vec<LoadSettings> {
        let load = |connections: &usize| LoadSettings {
            pace: Pace::Closed {
                connections: *connections,
            },
            threads: self.threads,
            warm_up_s: self.warmup,
            seconds: self.seconds,
        };
        self.connections.iter().map(load).collect()
    }
}

/// Batch sizes of the floor.
#[derive(Args)]
pub(crate) struct FloorSizes {
    /// Batch sizes of the floor, in orders
    #[arg(long, value_delimiter = ',', default_values_t = [64, 256, 1024, 4096], value_parser = parse_positive)]
    batches: Vec<usize>,
    /// Seconds per batch size of the floor
    #[arg(long, default_value_t = 3)]
    floor_seconds: u64,
}

impl FloorSizes {
    pub(crate) fn plan(self, rounds: usize) -> FloorPlan {
        FloorPlan {
            batches: self.batches,
            seconds: self.floor_seconds,
            rounds,
        }
    }
}

/// A single-threaded runtime leaves the other cores to the load.
pub(crate) fn create_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Prints to standard error. A closed terminal does not stop the measurement.
pub(crate) fn print_progress(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Writes the JSON file and prints the report.
pub(crate) fn publish(report: &(impl Serialize + Display), json: Option<&Path>) -> anyhow::Result<()> {
    if let Some(path) = json {
        std::fs::write(path, serde_json::to_vec_pretty(report)?).context("cannot write the JSON report")?;
    }
    write!(std::io::stdout().lock(), "{report}")?;
    Ok(())
}
