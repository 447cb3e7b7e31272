//! Command line of the load generator and auditor.
//!
//! Exit codes: 0 the figures count, 1 an audit or a check failed, 2 the command could not run, 3 the audit passed and a
//! threshold is missed.

mod cli;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use vouchsafe_load::report::Verdict;

use crate::cli::run::RunArgs;
use crate::cli::scenario::ScenarioArgs;

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
    Run(Box<RunArgs>),
    /// Start a private service, run a scenario, report, audit and stop it; for each file
    Scenario(Box<ScenarioArgs>),
    /// Check a recorded history (one JSON event per line)
    Check {
        /// History file
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
        Ok(Verdict::Passed) => ExitCode::SUCCESS,
        Ok(Verdict::AuditFailed) => ExitCode::from(1),
        Ok(Verdict::ThresholdMissed) => ExitCode::from(3),
        Err(error) => {
            // The terminal may be gone; there is no other place to report to.
            let _ = writeln!(std::io::stderr(), "load: {error:#}");
            ExitCode::from(2)
        }
    }
}
