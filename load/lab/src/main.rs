//! Command line of the comparisons.
//!
//! Exit codes: 0 the figures count, 1 an audit or a check failed, 2 the command could not run.

mod cli;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::cli::compare::CompareArgs;
use crate::cli::peer::PeerArgs;

/// The service and the generator use the same allocator, so that no contender has an advantage.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Compare a Vouchsafe service with a peer and with a Postgres floor
#[derive(Parser)]
#[command(name = "lab", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare the service with a peer and the Postgres floor, in turns on one server
    Compare(CompareArgs),
    /// Serve the order API of the service with one transaction per order and row locks, or a reduced variant of it
    #[command(hide = true)]
    Peer(Box<PeerArgs>),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Compare(args) => cli::compare::command(args),
        Command::Peer(args) => cli::peer::command(*args),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            // The terminal may be gone; there is no other place to report to.
            let _ = writeln!(std::io::stderr(), "lab: {error:#}");
            ExitCode::from(2)
        }
    }
}
