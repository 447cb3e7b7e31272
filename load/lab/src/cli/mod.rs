//! Commands of `lab`, one module each, and their common arguments.

pub(crate) mod compare;
pub(crate) mod peer;

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use vouchsafe_load::deployment::TestDeployment;

/// Turns of a measurement.
#[derive(Args)]
pub(crate) struct TurnArgs {
    /// Service program [default: `vouchsafe` in the directory of this program]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Number of rounds
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// Measured seconds per turn
    #[arg(long, default_value_t = 10)]
    pub(crate) seconds: u64,
    /// Warm-up seconds per turn
    #[arg(long, default_value_t = 3)]
    pub(crate) warmup: u64,
    /// Initial vouchers per database; must suffice for all its turns
    #[arg(long, default_value_t = 1_500_000)]
    pub(crate) stock: u64,
    /// Also write the report as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl TurnArgs {
    pub(crate) fn program(&self) -> std::io::Result<PathBuf> {
        match &self.program {
            Some(program) => Ok(program.clone()),
            None => TestDeployment::default_program(),
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
