//! The commands that speak to a running service.

use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

/// What a client can ask for.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the live actors.
    Actors,
}

/// Runs a command.
#[must_use]
pub fn run(command: Command, data_dir: &Path) -> ExitCode {
    let _ = (command, data_dir);
    ExitCode::SUCCESS
}
