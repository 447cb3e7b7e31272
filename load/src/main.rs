//! The command line of the load generator: `load run` loads and audits a service, `load scenario` a service of its own,
//! `load grown` one on a database that is filled before; `load check` checks a recorded history; `load floor`, `load search` and `load compare` measure
//! what the service stands beside; `load nodes` what two nodes give; `load growth` shows how the benches' costs grow. Exit 0: the figures count; 1: the audit or the check failed; 2: it could not be run.

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

/// As the service: the generator takes less of the machine that it shares.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Loads a Vouchsafe service over its wire and audits what it acknowledged.
#[derive(Parser)]
#[command(name = "load", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Orders of a service that runs already, reports, and audits.
    Run(RunArgs),
    /// Starts a service of its own, plays a scenario, reports, audits, and ends it.
    Scenario(ScenarioArgs),
    /// Plays a scenario on an empty database and on one that is filled before.
    Grown(GrownArgs),
    /// Checks a recorded history (one JSON event a line).
    Check {
        /// The file.
        history: PathBuf,
    },
    /// Measures what the database takes at all: plain batch inserts, at the best size of batch.
    Floor(FloorArgs),
    /// Looks for the best peer: every shape with every size of pool.
    Search(SearchArgs),
    /// Compares the service with a peer and a floor, in turns on one server.
    Compare(CompareArgs),
    /// Measures one node and two on one database, beside what a model of one says of two.
    Nodes(NodesArgs),
    /// Tells what criterion's benches measured by size, as a table and as a drawing.
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
            // Nothing is left to do if the terminal is gone.
            let _ = writeln!(std::io::stderr(), "load: {error:#}");
            ExitCode::from(2)
        }
    }
}
