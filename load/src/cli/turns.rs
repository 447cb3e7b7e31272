//! What do the commands that measure in turns have in common? How each turn is loaded, and where the report goes.

use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use vouchsafe_load::compare::turn::LoadSettings;
use vouchsafe_load::floor::FloorPlan;
use vouchsafe_load::scenario::Pace;

use super::parse_positive;

/// How each turn is loaded.
#[derive(Args)]
pub(crate) struct TurnArgs {
    /// Connections, each with one order open at a time; each number in turn.
    #[arg(long, value_delimiter = ',', default_values_t = [256, 64], value_parser = parse_positive)]
    connections: Vec<usize>,
    /// Generator threads.
    #[arg(long, default_value_t = 1, value_parser = parse_positive)]
    threads: usize,
    /// Seconds of each turn that are measured.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Seconds of each turn before anything is measured.
    #[arg(long, default_value_t = 3)]
    warmup: u64,
    /// How often everybody has a turn.
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// Vouchers in each database at its start: enough for what is sold in all turns on it.
    #[arg(long, default_value_t = 500_000)]
    pub(crate) stock: u64,
    /// Write the report as JSON, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl TurnArgs {
    /// A closed loop for each number of connections.
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

/// Which sizes of batch the floor tries.
#[derive(Args)]
pub(crate) struct FloorSizes {
    /// Orders of a batch of the floor, each size in turn.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 256, 1024, 4096], value_parser = parse_positive)]
    batches: Vec<usize>,
    /// Seconds for each size of batch.
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

/// Where measuring happens: nothing else is to be done meanwhile.
pub(crate) fn create_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Tells whoever waits; a terminal that is gone does not end a measurement.
pub(crate) fn print_progress(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Writes a report where it is to go, and to the terminal.
pub(crate) fn publish(report: &(impl Serialize + Display), json: Option<&Path>) -> anyhow::Result<()> {
    if let Some(path) = json {
        std::fs::write(path, serde_json::to_vec_pretty(report)?).context("writing the JSON report")?;
    }
    write!(std::io::stdout().lock(), "{report}")?;
    Ok(())
}
