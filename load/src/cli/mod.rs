//! Commands of `load`, one module each, and their common arguments.

pub(crate) mod ab;
pub(crate) mod compare;
pub(crate) mod guard;
pub(crate) mod peer;
pub(crate) mod run;
pub(crate) mod scenario;
pub(crate) mod sweep;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use vouchsafe_load::condition::Condition;
use vouchsafe_load::report::baseline::Baseline;
use vouchsafe_load::report::{Report, RunReport, Verdict, check_output_file, publish, write_output_file};
use vouchsafe_load::run::driver::{DEFAULT_SAMPLES, DEFAULT_SEED};
use vouchsafe_load::scenario_run::GeneratorOptions;

/// Arguments of the generator and the audit.
#[derive(Args)]
pub(crate) struct GeneratorArgs {
    /// Generator threads
    #[arg(long, default_value_t = 1, value_parser = parse_positive)]
    pub(crate) threads: usize,
    /// Seed for arrivals, SKUs and partners; idempotency keys are always new
    #[arg(long, default_value_t = DEFAULT_SEED)]
    pub(crate) seed: u64,
    /// Maximum number of orders that the audit reads back and replays
    #[arg(long, default_value_t = DEFAULT_SAMPLES)]
    pub(crate) audit_sample: usize,
    /// Seconds after an open loop, after which requests that are still open count as dropped [default: 10, or
    /// drain_s of the scenario]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) drain: Option<u64>,
}

/// Arguments of the report of runs.
#[derive(Args)]
pub(crate) struct ReportArgs {
    /// Also write the report as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also write the report as an HTML page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write the latency histograms in the log format of HdrHistogram
    #[arg(long, value_name = "FILE")]
    hlog: Option<PathBuf>,
    /// Exit with 3 unless this holds, for example 'p99<=50' or 'costs.wal.bytes<3000'; for any number of the
    /// JSON report, can be repeated
    #[arg(long, value_name = "CONDITION")]
    threshold: Vec<Condition>,
    /// Compare with an earlier JSON report of the same scenarios
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Exit with 3 if this holds for the ratio to the baseline, for example 'service_cpu>1.05' or
    /// 'orders_per_s<0.95'; can be repeated
    #[arg(long, value_name = "CONDITION", requires = "baseline")]
    fail_if: Vec<Condition>,
}

impl GeneratorArgs {
    pub(crate) fn options(&self) -> GeneratorOptions {
        GeneratorOptions {
            seed: self.seed,
            threads: self.threads,
            samples: self.audit_sample,
            has_stacks: false,
        }
    }
}

impl ReportArgs {
    /// Checks all files before the runs and reads the baseline, so that a wrong file does not waste them.
    pub(crate) fn check_files(&self, scenarios: &[Option<&str>]) -> anyhow::Result<Option<Baseline>> {
        let baseline = self.baseline.as_deref();
        let mut paths = BTreeSet::new();
        for path in [&self.json, &self.html, &self.hlog].into_iter().flatten() {
            check_output_file(path, baseline.as_slice())?;
            anyhow::ensure!(
                paths.insert(path),
                "two reports name the file `{}`: name another one",
                path.display()
            );
        }
        let Some(path) = baseline else {
            return Ok(None);
        };
        let baseline = Baseline::read(path, scenarios)?;
        baseline.check_figures(&self.fail_if, scenarios)?;
        Ok(Some(baseline))
    }

    /// Compares, prints and writes the report; returns its result.
    pub(crate) fn publish(
        &self,
        mut runs: Vec<RunReport>,
        baseline: Option<&Baseline>,
    ) -> anyhow::Result<Verdict> {
        for run in &mut runs {
            run.check_thresholds(&self.threshold)?;
            if let Some(baseline) = baseline {
                run.compare_with(baseline, &self.fail_if)?;
            }
        }
        let report = Report { runs };
        publish(&report, self.json.as_deref())?;
        if let Some(path) = &self.html {
            write_output_file(path, report.to_html()?.as_bytes())?;
        }
        if let Some(path) = &self.hlog {
            write_output_file(path, report.to_histogram_log()?.as_bytes())?;
        }
        let mut out = std::io::stdout().lock();
        for (form, path) in [
            ("HTML", &self.html),
            ("JSON", &self.json),
            ("histogram", &self.hlog),
        ] {
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

/// Prints to standard error. A closed terminal does not stop the measurement.
pub(crate) fn print_progress(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
