//! Commands of `load`, one module each, and their common arguments.

pub(crate) mod check;
pub(crate) mod run;
pub(crate) mod scenario;

use std::path::PathBuf;

use clap::Args;
use vouchsafe_load::run::driver::{DEFAULT_SAMPLES, DEFAULT_SEED};

/// Arguments of the generator and its report.
#[derive(Args)]
pub(crate) struct CommonArgs {
    /// Generator threads
    #[arg(long, default_value_t = 1, value_parser = parse_positive)]
    pub(crate) threads: usize,
    /// Seed for arrivals, SKUs and partners; idempotency keys are always new
    #[arg(long, default_value_t = DEFAULT_SEED)]
    pub(crate) seed: u64,
    /// Maximum number of orders that the audit reads back and replays
    #[arg(long, default_value_t = DEFAULT_SAMPLES)]
    pub(crate) audit_sample: usize,
    /// Also write the report as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

pub(crate) fn parse_positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}
