//! Comparison of a run with an earlier JSON report: ratios of figures, and the conditions that differ.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde::Serialize;
use serde_json::{Map, Value};

use super::figures::{FIGURES, figure_names, figure_of, value_at};
use super::thresholds::check_ratios;
use super::{PLAIN_RUN, RunReport};
use crate::audit::Check;
use crate::condition::Condition;
use crate::resources::costs::format_value;

/// Conditions that should be equal, with their path in the JSON report. Those with several values are
/// compared by value.
const CONDITIONS: [(&str, &str); 17] = [
    ("program", "conditions.program"),
    ("profile", "conditions.profile"),
    ("build", "conditions.build"),
    ("environment", "conditions.environment"),
    ("CPU", "conditions.cpu_model"),
    ("cores", "conditions.cores"),
    ("memory, MiB", "conditions.memory_mib"),
    ("kernel", "conditions.kernel"),
    ("Postgres", "conditions.database"),
    ("load", "setup.order"),
    ("hash of the scenario", "scenario.hash"),
    ("pace", "setup.pace"),
    ("seed", "setup.seed"),
    ("generator threads", "setup.threads"),
    ("warm-up, s", "setup.warm_up_s"),
    ("length", "setup.length"),
    ("drain deadline, s", "offered_load.drain_deadline_s"),
];

/// A disk whose sync takes longer by this factor is another condition.
const DISK_SYNC_FACTOR: f64 = 1.5;

/// An earlier JSON report.
#[derive(Clone, Debug)]
pub struct Baseline {
    path: PathBuf,
    report: Value,
}

/// A run compared with the run of the same scenario in an earlier report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Start of the earlier run.
    pub started_at: String,
    pub figures: Vec<ComparedFigure>,
    /// Differing conditions and warnings of the earlier run, as shown in reports.
    pub differences: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedFigure {
    pub figure: String,
    pub baseline: f64,
    pub current: f64,
    /// `None` if the baseline is 0.
    pub ratio: Option<f64>,
}

impl Baseline {
    /// Reads a JSON report and checks that it has a run of each of these scenarios; `None` stands for `load
    /// run`.
    ///
    /// # Errors
    /// If the file is not a report or has no run of a scenario.
    pub fn read(path: &Path, scenarios: &[Option<&str>]) -> anyhow::Result<Self> {
        let text =
            std::fs::read(path).with_context(|| format!("cannot read the baseline `{}`", path.display()))?;
        let report = serde_json::from_slice(&text).unwrap_or_default();
        let baseline = Self {
            path: path.to_owned(),
            report,
        };
        let path = path.display();
        ensure!(
            baseline.runs().any(|run| run.pointer("/orders_per_s").is_some()),
            "`{path}` is not a JSON report of this version of load"
        );
        for name in scenarios.iter().map(|name| name.unwrap_or(PLAIN_RUN)) {
            if !baseline.runs().any(|run| name_of(run) == name) {
                let others: BTreeSet<_> = baseline.runs().map(name_of).collect();
                let others = others.into_iter().collect::<Vec<_>>().join(", ");
                bail!("`{path}` is a report of {others}: it has no run of {name} to compare with");
            }
        }
        Ok(baseline)
    }

    /// Checks before a run that every condition names a figure of each of these scenarios.
    ///
    /// # Errors
    /// A figure is missing; the error names the first one.
    pub fn check_figures(&self, conditions: &[Condition], scenarios: &[Option<&str>]) -> anyhow::Result<()> {
        for name in scenarios.iter().map(|name| name.unwrap_or(PLAIN_RUN)) {
            let run = self.run_of(name)?;
            for Condition { figure, .. } in conditions {
                ensure!(
                    figure_of(run, figure).is_some(),
                    "`{figure}` is not a number of the run of {name} in `{}`: name one of {}, or the path of a number in that \
                     file, such as latency_ms.max",
                    self.path.display(),
                    figure_names()
                );
            }
        }
        Ok(())
    }

    fn run_of(&self, name: &str) -> anyhow::Result<&Value> {
        let run = self.runs().find(|run| name_of(run) == name);
        run.with_context(|| format!("`{}` has no run of {name}", self.path.display()))
    }

    fn runs(&self) -> impl Iterator<Item = &Value> {
        self.report["runs"].as_array().into_iter().flatten()
    }

    /// Compares a run with the first one of its scenario, and checks the ratios against the conditions that
    /// fail it.
    ///
    /// # Errors
    /// If the baseline has no run of the scenario.
    pub fn compare(
        &self,
        run: &RunReport,
        fail_if: &[Condition],
    ) -> anyhow::Result<(Comparison, Vec<Check>)> {
        let earlier = self.run_of(run.name())?;
        let current = serde_json::to_value(run)?;
        let comparison = Comparison {
            started_at: format_condition(&earlier["conditions"]["started_at"]),
            figures: compare_figures(earlier, &current),
            differences: find_differences(earlier, &current),
        };
        Ok((comparison, check_ratios(fail_if, earlier, &current)))
    }
}

fn name_of(run: &Value) -> &str {
    run.pointer("/scenario/name")
        .and_then(Value::as_str)
        .unwrap_or(PLAIN_RUN)
}

fn compare_figures(earlier: &Value, current: &Value) -> Vec<ComparedFigure> {
    let compare = |figure: String, value: &dyn Fn(&Value) -> Option<f64>| {
        let (baseline, current) = (value(earlier)?, value(current)?);
        Some(ComparedFigure {
            figure,
            baseline,
            current,
            ratio: (baseline > 0.0).then(|| current / baseline),
        })
    };
    let figures = FIGURES
        .iter()
        .map(|figure| compare(figure.label.to_owned(), &|run| figure_of(run, figure.name)));
    let kinds = current["background"].as_object().into_iter().flat_map(Map::keys);
    let background = kinds.flat_map(|kind| {
        [("requests/s", "per_s"), ("p99, ms", "latency_ms.p99")].map(|(name, place)| {
            let path = format!("background.{kind}.{place}");
            compare(format!("{kind}, {name}"), &|run| figure_of(run, &path))
        })
    });
    figures.chain(background).flatten().collect()
}

fn find_differences(earlier: &Value, current: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    for (name, path) in CONDITIONS {
        let [before, now] = [earlier, current].map(|run| value_at(run, path).unwrap_or(&Value::Null));
        find_value_differences(name, before, now, &mut differences);
    }
    let disk_sync = [earlier, current].map(|run| figure_of(run, "conditions.disk_sync_ms"));
    if let [Some(before), Some(now)] = disk_sync
        && before.max(now) > before.min(now) * DISK_SYNC_FACTOR
    {
        let [before, now] = [before, now].map(|ms| format_value(Some(ms)));
        differences.push(format!("disk sync, ms: {before} then, {now} now"));
    }
    let warnings = earlier["warnings"].as_array().into_iter().flatten();
    differences.extend(
        warnings.filter_map(|warning| Some(format!("warning of the baseline: {}", warning.as_str()?))),
    );
    differences
}

/// Compares the values of objects one by one. A value that only one of them has is not set in the other.
fn find_value_differences(name: &str, before: &Value, now: &Value, differences: &mut Vec<String>) {
    if let (Value::Object(before), Value::Object(now)) = (before, now) {
        let keys: BTreeSet<_> = before.keys().chain(now.keys()).collect();
        let value =
            |values: &Map<String, Value>, key| values.get(key).cloned().unwrap_or_else(|| "not set".into());
        for key in keys {
            let name = format!("{name} {key}");
            find_value_differences(&name, &value(before, key), &value(now, key), differences);
        }
    } else if before != now {
        let [before, now] = [before, now].map(format_condition);
        differences.push(format!("{name}: {before} then, {now} now"));
    }
}

fn format_condition(value: &Value) -> String {
    match value {
        Value::Null => "unknown".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl ComparedFigure {
    /// Figure, baseline, current value and ratio, as shown in reports.
    pub(super) fn cells(&self) -> [String; 4] {
        [
            self.figure.clone(),
            format_value(Some(self.baseline)),
            format_value(Some(self.current)),
            self.ratio
                .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2} ×")),
        ]
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "compared with the run of {}", self.started_at)?;
        writeln!(
            f,
            "  {:<32}{:>12}{:>12}{:>10}",
            "", "baseline", "current", "ratio"
        )?;
        for [figure, baseline, current, ratio] in self.figures.iter().map(ComparedFigure::cells) {
            writeln!(f, "  {figure:<32}{baseline:>12}{current:>12}{ratio:>10}")?;
        }
        self.differences
            .iter()
            .try_for_each(|difference| writeln!(f, "  differs: {difference}"))
    }
}
