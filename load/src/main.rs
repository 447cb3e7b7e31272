//! The command line of the load generator: `load run` loads and audits a service, `load scenario` a service of its own,
//! `load check` checks a recorded history. Exit 0: the figures count; 1: the audit or the check failed; 2: it could not be
//! run.

mod cli;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::cli::run::RunArgs;
use crate::cli::scenario::ScenarioArgs;

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
    /// Checks a recorded history (one JSON event a line).
    Check {
        /// The file.
        history: PathBuf,
    },
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(args) => cli::run::command(&args),
        Command::Scenario(args) => cli::scenario::command(&args),
        Command::Check { history } => cli::check::command(&history),
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
