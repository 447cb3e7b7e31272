//! Commands of `load`, one module each, and their common arguments.

pub(crate) mod check;
pub(crate) mod run;
pub(crate) mod scenario;

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use vouchsafe_load::report::baseline::Baseline;
use vouchsafe_load::report::{Report, RunReport, Verdict, publish};
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
    json: Option<PathBuf>,
    /// Also write the report as an HTML page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Compare with an earlier JSON report of the same scenarios
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
}

impl CommonArgs {
    /// Reads the baseline before the runs, so that a wrong file does not waste them.
    pub(crate) fn read_baseline(&self, scenarios: &[Option<&str>]) -> anyhow::Result<Option<Baseline>> {
        let path = self.baseline.as_deref();
        path.map(|path| Baseline::read(path, scenarios)).transpose()
    }

    /// Compares, prints and writes the report; returns its result.
    pub(crate) fn publish(
        &self,
        mut runs: Vec<RunReport>,
        baseline: Option<&Baseline>,
    ) -> anyhow::Result<Verdict> {
        for run in &mut runs {
            run.baseline = baseline.map(|baseline| baseline.compare(run)).transpose()?;
        }
        let report = Report { runs };
        if let Some(path) = &self.html {
            report.write_html(path)?;
        }
        publish(&report, self.json.as_deref())?;
        let mut out = std::io::stdout().lock();
        for (form, path) in [("HTML", &self.html), ("JSON", &self.json)] {
            if let Some(path) = path {
                writeln!(out, "{form} report: {}", path.display())?;
            }
        }
        Ok(report.verdict())
    }
}

pub(crate) fn parse_positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}
