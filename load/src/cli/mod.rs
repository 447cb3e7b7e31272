//! Which commands are there, a file each, and what do they have in common?

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
use vouchsafe_load::load_run::SigningTime;
use vouchsafe_load::report::Report;

/// How the generator works, and where its report goes.
#[derive(Args)]
pub(crate) struct CommonArgs {
    /// Generator threads; it shares the machine with the service.
    #[arg(long, default_value_t = 1, value_parser = parse_positive)]
    pub(crate) threads: usize,
    /// Sign all new orders before the run: with an open loop of at most 240 s, or with --orders and --warmup 0.
    #[arg(long)]
    pub(crate) presigned: bool,
    /// What chance begins with: arrivals, SKUs, partners. Keys are new each time.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Acknowledged orders that the audit reads back and replays, at most.
    #[arg(long, default_value_t = 100)]
    pub(crate) audit_sample: usize,
    /// Write the report as JSON, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the report as a page with plots, too.
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

    /// Writes the report where it is to go, and to the terminal.
    pub(crate) fn publish(&self, report: &Report) -> anyhow::Result<()> {
        report
            .write(self.json.as_deref(), self.html.as_deref())
            .context("writing the report")?;
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
