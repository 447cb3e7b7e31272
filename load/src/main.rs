//! Command line of the load generator and auditor.
//!
//! Exit codes: 2 the command could not run; `vouchsafe_load::report::Verdict` has the others.

mod cli;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::cli::ab::AbArgs;
use crate::cli::guard::GuardArgs;
use crate::cli::run::RunArgs;
use crate::cli::scenario::ScenarioArgs;

/// The service uses the same allocator. The generator needs less CPU with it on the shared machine.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Load and audit a Vouchsafe service over its public API
#[derive(Parser)]
#[command(name = "load", version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 the figures count, 1 the audit failed, 2 the command could not run, 3 a threshold is missed or a figure is worse, \
4 the offered rate was not reached, 5 inconclusive.";

#[derive(Subcommand)]
enum Command {
    /// Load a running service, report and audit
    Run(Box<RunArgs>),
    /// Start a private service, run a scenario, report, audit and stop it; for each file
    Scenario(Box<ScenarioArgs>),
    /// Compare two service programs in turns, in alternating order, with the same scenario
    Ab(Box<AbArgs>),
    /// Count what an order costs under callgrind, and compare it with a record or another program
    Guard(GuardArgs),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(args) => cli::run::command(&args),
        Command::Scenario(args) => cli::scenario::command(&args),
        Command::Ab(args) => cli::ab::command(&args),
        Command::Guard(args) => cli::guard::command(&args),
    };
    match outcome {
        Ok(verdict) => ExitCode::from(verdict.exit_code()),
        Err(error) => {
            // The terminal may be gone; there is no other place to report to.
            let _ = writeln!(std::io::stderr(), "load: {error:#}");
            ExitCode::from(2)
        }
    }
}
