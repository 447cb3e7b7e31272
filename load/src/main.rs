//! Command line of the load generator and auditor.
//!
//! Exit codes: 2 the command could not run; `vouchsafe_load::report::Verdict` has the others.

mod cli;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::cli::ab::AbArgs;
use crate::cli::compare::CompareArgs;
use crate::cli::guard::GuardArgs;
use crate::cli::peer::PeerArgs;
use crate::cli::run::RunArgs;
use crate::cli::scenario::ScenarioArgs;
use crate::cli::sweep::SweepArgs;

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

const EXIT_CODES: &str = "Exit codes: 0 the figures count, 1 the audit failed, 2 the command could not \
    run, 3 a threshold is missed or a figure is worse, 4 the offered rate was not reached, 5 inconclusive.";

#[derive(Subcommand)]
enum Command {
    /// Load a running service, report and audit
    Run(Box<RunArgs>),
    /// Start a private service, run a scenario, report, audit and stop it; for each file
    Scenario(Box<ScenarioArgs>),
    /// Find the highest rate of an open loop within bounds, such as p99 <= 50 ms, with an audit at each rate
    Sweep(Box<SweepArgs>),
    /// Compare two service programs in turns, in alternating order, with the same scenario
    Ab(Box<AbArgs>),
    /// Count what an order costs under callgrind, and compare it with a record or another program
    Guard(GuardArgs),
    /// Compare the service with a peer and the Postgres floor, in turns on one server
    Compare(CompareArgs),
    /// Serve the order API with one transaction per order and row locks, or a reduced variant of it
    #[command(hide = true)]
    Peer(Box<PeerArgs>),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(args) => cli::run::command(&args),
        Command::Scenario(args) => cli::scenario::command(&args),
        Command::Sweep(args) => cli::sweep::command(&args),
        Command::Ab(args) => cli::ab::command(&args),
        Command::Guard(args) => cli::guard::command(&args),
        Command::Compare(args) => cli::compare::command(&args),
        Command::Peer(args) => cli::peer::command(*args),
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
