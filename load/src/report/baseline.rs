//! Comparison of a run with an earlier JSON report: ratios of figures, and the conditions that differ.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde::Serialize;
use serde_json::Value;

use super::{PLAIN_RUN, RunReport};
use crate::resources::costs::format_value;

/// Compared figures with their place in the JSON report.
const FIGURES: [(&str, &str); 10] = [
    ("orders/s", "/orders_per_s"),
    ("vouchers/s", "/vouchers_per_s"),
    ("p50, ms", "/latency_ms/p50"),
    ("p90, ms", "/latency_ms/p90"),
    ("p99, ms", "/latency_ms/p99"),
    ("p99.9, ms", "/latency_ms/p99_9"),
    ("memory at most, MiB", "/memory/max_mib"),
    ("WAL, bytes per order", "/costs/wal/bytes"),
    ("commits per order", "/costs/wal/commits"),
    ("journal records per commit", "/costs/records_per_batch"),
];

/// Components whose CPU time per order is compared.
const COMPONENTS: [&str; 3] = ["service", "postgres", "generator"];

/// Conditions that should be equal, with their place in the JSON report.
const CONDITIONS: [(&str, &str); 11] = [
    ("program", "/conditions/program"),
    ("profile", "/conditions/profile"),
    ("CPU", "/conditions/cpu_model"),
    ("cores", "/conditions/cores"),
    ("memory, MiB", "/conditions/memory_mib"),
    ("kernel", "/conditions/kernel"),
    ("Postgres", "/conditions/database"),
    ("load", "/setup/order"),
    ("pace", "/setup/pace"),
    ("generator threads", "/setup/threads"),
    ("warm-up, s", "/setup/warm_up_s"),
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
    /// Reads a JSON report and checks that it has a run of each of these scenarios; `None` stands for `load run`.
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

    fn runs(&self) -> impl Iterator<Item = &Value> {
        self.report["runs"].as_array().into_iter().flatten()
    }

    /// Compares a run with the first one of its scenario.
    ///
    /// # Errors
    /// If the baseline has no run of the scenario.
    pub fn compare(&self, run: &RunReport) -> anyhow::Result<Comparison> {
        let earlier = self.runs().find(|earlier| name_of(earlier) == run.name());
        let earlier =
            earlier.with_context(|| format!("`{}` has no run of {}", self.path.display(), run.name()))?;
        let current = serde_json::to_value(run)?;
        Ok(Comparison {
            started_at: text_at(earlier, "/conditions/started_at"),
            figures: compare_figures(earlier, &current),
            differences: find_differences(earlier, &current),
        })
    }
}

fn name_of(run: &Value) -> &str {
    run.pointer("/scenario/name")
        .and_then(Value::as_str)
        .unwrap_or(PLAIN_RUN)
}

fn number_at(run: &Value, pointer: &str) -> Option<f64> {
    run.pointer(pointer)?.as_f64()
}

fn text_at(run: &Value, pointer: &str) -> String {
    match run.pointer(pointer) {
        None | Some(Value::Null) => "unknown".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Object(fields)) => {
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{name} {}", value.as_str().unwrap_or("?")));
            fields.collect::<Vec<_>>().join(", ")
        }
        Some(other) => other.to_string(),
    }
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
        .map(|(name, pointer)| compare((*name).to_owned(), &|run| number_at(run, pointer)));
    let components = COMPONENTS.iter().map(|component| {
        let name = format!("{component}, CPU µs per order");
        compare(name, &|run| component_cpu_us(run, component))
    });
    let kinds = current["background"]
        .as_object()
        .into_iter()
        .flat_map(serde_json::Map::keys);
    let background = kinds.flat_map(|kind| {
        [("requests/s", "per_s"), ("p99, ms", "latency_ms/p99")].map(|(name, place)| {
            let pointer = format!("/background/{kind}/{place}");
            compare(format!("{kind}, {name}"), &|run| number_at(run, &pointer))
        })
    });
    figures.chain(components).chain(background).flatten().collect()
}

/// CPU time per order of all threads of a component.
fn component_cpu_us(run: &Value, component: &str) -> Option<f64> {
    let threads = run.pointer("/costs/threads")?.as_array()?.iter();
    let own = threads.filter(|thread| thread["component"] == component);
    Some(own.filter_map(|thread| thread["cpu_us"].as_f64()).sum())
}

fn find_differences(earlier: &Value, current: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    for (name, pointer) in CONDITIONS {
        let (before, now) = (text_at(earlier, pointer), text_at(current, pointer));
        if before != now {
            differences.push(format!("{name}: {before} then, {now} now"));
        }
    }
    let disk_sync = "/conditions/disk_sync_ms";
    if let (Some(before), Some(now)) = (number_at(earlier, disk_sync), number_at(current, disk_sync))
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
