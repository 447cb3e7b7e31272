//! Run report: conditions, metrics, audit, thresholds and the comparison with an earlier report, as text,
//! JSON and HTML.
//!
//! Rule: text and HTML show a quantity in the same unit, because both show the same cells.

pub mod baseline;
mod chart;
pub(crate) mod figures;
mod flame_graph;
mod histogram_log;
mod html;
mod output_file;
mod thresholds;
mod verdict;
mod warnings;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use self::baseline::{Baseline, Comparison};
use self::thresholds::check_thresholds;
use self::warnings::{find_doubts, find_other_limits, find_warnings};
use crate::audit::{Audit, Check, format_checks};
use crate::condition::Condition;
use crate::follow_up::FollowUp;
use crate::resources::conditions::Conditions;
use crate::resources::costs::format_value;
use crate::resources::proc::Component;
use crate::run::metrics::RunMetrics;
use crate::run::resource_monitor::ResourceUsage;

pub use self::flame_graph::draw_flame_graph;
pub use self::output_file::{check_output_file, write_output_file};
pub use self::verdict::Verdict;

/// Name of a run without a scenario.
const PLAIN_RUN: &str = "load run";

/// Report of one or more runs on the same machine.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub runs: Vec<RunReport>,
}

/// Report of one run. Metrics are never published without their audit.
#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    /// `None` for a run without a scenario.
    pub scenario: Option<ScenarioInfo>,
    pub conditions: Conditions,
    /// Reasons to doubt the figures.
    pub warnings: Vec<String>,
    /// Reasons why thresholds decide nothing.
    pub doubts: Vec<String>,
    /// Limits by the generator and the machine: the service does not limit the figures.
    #[serde(skip)]
    pub other_limits: Vec<String>,
    /// Folded stacks of the service; `None` if they were not sampled.
    #[serde(skip)]
    pub stacks: Option<String>,
    #[serde(flatten)]
    pub metrics: RunMetrics,
    /// Results of pauses, restarts, replays and webhooks.
    #[serde(flatten)]
    pub follow_up: FollowUp,
    /// Resource usage; incomplete if the service is not a local deployment.
    #[serde(flatten)]
    pub usage: ResourceUsage,
    pub audit: Audit,
    /// Results for the thresholds and for the ratios to the baseline.
    pub thresholds: Vec<Check>,
    /// Comparison with an earlier report, if one was given.
    pub baseline: Option<Comparison>,
}

/// Name and purpose of a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioInfo {
    pub name: String,
    pub description: String,
    /// Hash of the load that the scenario describes, without its name, texts, times and thresholds.
    pub hash: String,
    /// Duration of the seeding, in seconds.
    pub seeding_s: f64,
    pub pauses: Option<u64>,
}

impl Report {
    /// The worst result of all runs.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.runs
            .iter()
            .map(RunReport::verdict)
            .max()
            .unwrap_or(Verdict::Passed)
    }

    /// The report as a self-contained HTML page.
    ///
    /// # Errors
    /// If a chart cannot be drawn.
    pub fn to_html(&self) -> anyhow::Result<String> {
        html::render(self)
    }

    /// The latency histograms in the log format of `HdrHistogram`.
    ///
    /// # Errors
    /// If a histogram cannot be compressed.
    pub fn to_histogram_log(&self) -> anyhow::Result<String> {
        histogram_log::render(&self.runs)
    }

    /// Reasons to doubt the figures, each once, with the names of the runs unless it holds for all.
    fn warnings(&self) -> Vec<String> {
        let mut runs_by_warning: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for run in &self.runs {
            for warning in &run.warnings {
                runs_by_warning.entry(warning).or_default().push(run.name());
            }
        }
        let warnings = runs_by_warning.into_iter().map(|(warning, runs)| {
            if runs.len() == self.runs.len() {
                warning.to_owned()
            } else {
                format!("{}: {warning}", runs.join(", "))
            }
        });
        warnings.collect()
    }
}

impl RunReport {
    /// Report of a run without a scenario.
    #[must_use]
    pub fn new(conditions: Conditions, metrics: RunMetrics, usage: ResourceUsage, audit: Audit) -> Self {
        Self {
            scenario: None,
            warnings: find_warnings(&conditions, &metrics, &usage),
            doubts: find_doubts(&metrics, &usage),
            other_limits: find_other_limits(&metrics, &usage),
            stacks: None,
            conditions,
            metrics,
            follow_up: FollowUp::default(),
            usage,
            audit,
            thresholds: Vec::new(),
            baseline: None,
        }
    }

    /// Adds the results for these thresholds.
    ///
    /// # Errors
    /// If the report is not JSON.
    pub fn check_thresholds(&mut self, thresholds: &[Condition]) -> anyhow::Result<()> {
        let checks = check_thresholds(thresholds, &serde_json::to_value(&*self)?);
        self.thresholds.extend(checks);
        Ok(())
    }

    /// Adds the comparison with a baseline, and the results for the conditions on its ratios.
    ///
    /// # Errors
    /// If the baseline has no run of the scenario.
    pub fn compare_with(&mut self, baseline: &Baseline, fail_if: &[Condition]) -> anyhow::Result<()> {
        let (comparison, checks) = baseline.compare(self, fail_if)?;
        self.thresholds.extend(checks);
        self.baseline = Some(comparison);
        Ok(())
    }

    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let is_missed = self.thresholds.iter().any(|check| !check.passed);
        let is_reached = self.metrics.offered_load.is_none_or(|offered| offered.is_reached);
        if !self.audit.has_passed() {
            Verdict::AuditFailed
        } else if self.is_inconclusive() {
            Verdict::Inconclusive
        } else if is_missed {
            Verdict::ThresholdMissed
        } else if is_reached {
            Verdict::Passed
        } else {
            Verdict::RateNotReached
        }
    }

    /// Whether a decision is due and the figures allow none.
    fn is_inconclusive(&self) -> bool {
        !self.thresholds.is_empty() && !self.doubts.is_empty()
    }

    fn inconclusive_lines(&self) -> String {
        let doubts = self.doubts.iter().filter(|_| self.is_inconclusive());
        doubts.map(|doubt| format!("  inconclusive: {doubt}\n")).collect()
    }

    /// Name of the scenario.
    #[must_use]
    pub fn name(&self) -> &str {
        self.scenario
            .as_ref()
            .map_or(PLAIN_RUN, |scenario| &scenario.name)
    }

    fn failed_checks(&self) -> impl Iterator<Item = &Check> {
        let all = self.audit.checks.iter().chain(&self.thresholds);
        all.filter(|check| !check.passed)
    }

    /// Cells of the summary table, in the order of [`SUMMARY_COLUMNS`].
    fn summary(&self) -> [String; 8] {
        let metrics = &self.metrics;
        let cpu_us = |component| self.usage.costs.as_ref()?.cpu_us(component);
        let audit = if self.audit.has_passed() {
            "passed"
        } else {
            "FAILED"
        };
        let thresholds = match self.thresholds.iter().filter(|check| !check.passed).count() {
            _ if self.thresholds.is_empty() => "none".to_owned(),
            _ if self.is_inconclusive() => "INCONCLUSIVE".to_owned(),
            0 => "passed".to_owned(),
            missed => format!("{missed} MISSED"),
        };
        [
            self.name().to_owned(),
            format!("{:.0}", metrics.orders_per_s),
            format_value(Some(metrics.latency_ms.p50)),
            format_value(Some(metrics.latency_ms.p99)),
            format_value(cpu_us(Component::Service)),
            format_value(cpu_us(Component::Postgres)),
            audit.to_owned(),
            thresholds,
        ]
    }
}

/// Columns of the summary of several runs.
const SUMMARY_COLUMNS: [&str; 8] = [
    "scenario",
    "orders/s",
    "p50, ms",
    "p99, ms",
    "service, µs/order",
    "Postgres, µs/order",
    "audit",
    "thresholds",
];

/// Prints a report, then writes it as JSON, if a path is given. A closed terminal does not lose the file, and
/// an unwritable file does not lose the text.
///
/// # Errors
/// If the file cannot be written or the terminal is gone.
pub fn publish(report: &(impl Serialize + fmt::Display), json: Option<&Path>) -> anyhow::Result<()> {
    use std::io::Write as _;
    let printed = write!(std::io::stdout().lock(), "{report}");
    if let Some(path) = json {
        write_output_file(path, &serde_json::to_vec_pretty(report)?)?;
    }
    printed.context("cannot print the report")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.runs.first() else {
            return Ok(());
        };
        write!(f, "{}", first.conditions)?;
        for warning in self.warnings() {
            writeln!(f, "WARNING: {warning}")?;
        }
        writeln!(f)?;
        if let [run] = &self.runs[..] {
            return write!(f, "{run}");
        }
        write_summary_row(f, &SUMMARY_COLUMNS)?;
        self.runs
            .iter()
            .try_for_each(|run| write_summary_row(f, &run.summary()))?;
        for run in &self.runs {
            let missed: Vec<_> = run.failed_checks().collect();
            if !missed.is_empty() || run.is_inconclusive() {
                write!(
                    f,
                    "\n{}\n{}{}",
                    run.name(),
                    format_checks(missed),
                    run.inconclusive_lines()
                )?;
            }
            if let Some(baseline) = &run.baseline {
                write!(f, "\n{}: {baseline}", run.name())?;
            }
        }
        Ok(())
    }
}

fn write_summary_row(f: &mut fmt::Formatter<'_>, cells: &[impl fmt::Display]) -> fmt::Result {
    let [name, figures @ ..] = cells else {
        return Ok(());
    };
    write!(f, "{name:<24}")?;
    figures.iter().try_for_each(|cell| write!(f, "{cell:>20}"))?;
    writeln!(f)
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(scenario) = &self.scenario {
            writeln!(f, "{}: {}", scenario.name, scenario.description)?;
            writeln!(f, "seeded in {:.1} s", scenario.seeding_s)?;
            if let Some(pauses) = scenario.pauses {
                writeln!(f, "pauses of Postgres: {pauses}")?;
            }
        }
        let status = if self.audit.has_passed() {
            "passed"
        } else {
            "FAILED"
        };
        write!(
            f,
            "{}{}{}\naudit: {status}\n{}",
            self.metrics, self.follow_up, self.usage, self.audit
        )?;
        if !self.thresholds.is_empty() {
            write!(
                f,
                "\nthresholds\n{}{}",
                format_checks(&self.thresholds),
                self.inconclusive_lines()
            )?;
        }
        match &self.baseline {
            Some(baseline) => write!(f, "\n{baseline}"),
            None => Ok(()),
        }
    }
}
