//! Command line of the load generator and auditor.
//!
//! Exit codes: 0 the figures count, 1 an audit or a check failed, 2 the command could not run.

mod cli;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::cli::compare::CompareArgs;
use crate::cli::floor::FloorArgs;
use crate::cli::grown::GrownArgs;
use crate::cli::growth::GrowthArgs;
use crate::cli::nodes::NodesArgs;
use crate::cli::run::RunArgs;
use crate::cli::scenario::ScenarioArgs;
use crate::cli::search::SearchArgs;

/// The service uses the same allocator. The generator needs less CPU with it on the shared machine.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Load and audit a Vouchsafe service over its public API
#[derive(Parser)]
#[command(name = "load", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Load a running service, report and audit
    Run(RunArgs),
    /// Start a private service, run a scenario, report, audit and stop it
    Scenario(ScenarioArgs),
    /// Run a scenario on an empty database and on a prefilled one
    Grown(GrownArgs),
    /// Check a recorded history (one JSON event per line)
    Check {
        /// History file
        history: PathBuf,
    },
    /// Measure the upper bound of Postgres: plain batch inserts at the best batch size
    Floor(FloorArgs),
    /// Find the best peer: every transaction shape with every pool size
    Search(SearchArgs),
    /// Compare the service with a peer and the Postgres floor, in turns on one server
    Compare(CompareArgs),
    /// Measure one node and two nodes on one database, with the predictions of a model
    Nodes(NodesArgs),
    /// Report criterion results by size, as a table and as a plot
    Growth(GrowthArgs),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(args) => cli::run::command(&args),
        Command::Scenario(args) => cli::scenario::command(&args),
        Command::Grown(args) => cli::grown::command(&args),
        Command::Check { history } => cli::check::command(&history),
        Command::Floor(args) => cli::floor::command(args),
        Command::Search(args) => cli::search::command(&args),
        Command::Compare(args) => cli::compare::command(args),
        Command::Nodes(args) => cli::nodes::command(&args),
        Command::Growth(args) => cli::growth::command(&args),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            // The terminal may be gone; there is no other place to report to.
            let _ = writeln!(std::io::stderr(), "load: {error:#}");
            ExitCode::from(2)
        }
    }
}
