//! Commands of `load`, one module each, and their common arguments.

pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod floor;
pub(crate) mod grown;
pub(crate) mod growth;
pub(crate) mod nodes;
pub(crate) mod run;
pub(crate) mod scenario;
pub(crate) mod search;
mod turns;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use vouchsafe_load::report::Report;
use vouchsafe_load::run::driver::SigningTime;

/// Arguments of the generator and its report.
#[derive(Args)]
pub(crate) struct CommonArgs {
    /// Generator threads
    #[arg(long, default_value_t = 1, value_parser = parse_positive)]
    pub(crate) threads: usize,
    /// Sign all new orders before the run; needs an open loop of at most 240 s, or --orders with --warmup 0
    #[arg(long)]
    pub(crate) presigned: bool,
    /// Seed for arrivals, SKUs and partners; idempotency keys are always new
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Maximum number of orders that the audit reads back and replays
    #[arg(long, default_value_t = 100)]
    pub(crate) audit_sample: usize,
    /// Also write the report as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Also write the report as HTML with plots
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

impl CommonArgs {
    pub(crate) fn signing(&self) -> SigningTime {
        if self.presigned {
            SigningTime::Presigned
        } else {
            SigningTime::OnDemand
        }
    }

    /// Writes the report files and prints the report.
    pub(crate) fn publish(&self, report: &Report) -> anyhow::Result<()> {
        report
            .write(self.json.as_deref(), self.html.as_deref())
            .context("cannot write the report")?;
        write!(std::io::stdout().lock(), "{report}")?;
        Ok(())
    }
}

pub(crate) fn parse_positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}
