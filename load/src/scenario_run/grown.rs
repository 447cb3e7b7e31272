//! Cost of a grown database: one scenario on an empty database and on a prefilled one, in sequence, with ratios.

use std::fmt;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use super::prefill::{PrefillSizes, prefill_database};
use super::{GeneratorOptions, run_scenario};
use crate::deployment::TestDeployment;
use crate::deployment::postgres::SERVICE_DATABASE;
use crate::report::Report;
use crate::resources::costs::Component;
use crate::traffic::scenario::Scenario;

#[derive(Clone, Debug, Serialize)]
pub struct GrownReport {
    /// Size of the prefill.
    pub growth: PrefillSizes,
    /// Duration of the prefill, in seconds.
    pub grown_in_s: f64,
    /// Run on the empty database.
    pub empty: Report,
    /// Run on the prefilled database.
    pub grown: Report,
    pub ratios: Vec<Ratio>,
}

/// One metric of both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Name and unit of the metric.
    #[serde(rename = "of")]
    pub metric: &'static str,
    /// Run on the empty database.
    pub empty: f64,
    /// Run on the prefilled database.
    pub grown: f64,
    /// `grown` divided by `empty`.
    pub ratio: f64,
}

impl GrownReport {
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.empty.audit.has_passed() && self.grown.audit.has_passed()
    }
}

/// Runs the scenario on both databases. Blocks.
///
/// # Errors
/// If a deployment cannot be started, prefilled or loaded.
pub fn compare_empty_and_grown(
    program: &Path,
    scenario: &Scenario,
    growth: PrefillSizes,
    options: GeneratorOptions,
    say: &mut impl FnMut(&str),
) -> anyhow::Result<GrownReport> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    say("empty database");
    let mut deployment = runtime.block_on(TestDeployment::start(program))?;
    let empty = run_scenario(scenario, &mut deployment, options)?;
    deployment.stop()?;

    say(&format!("inserting {growth}"));
    let mut deployment = runtime.block_on(TestDeployment::start(program))?;
    let started = Instant::now();
    let superuser = deployment
        .postgres()?
        .superuser_options()
        .database(SERVICE_DATABASE);
    runtime.block_on(prefill_database(&superuser, &growth))?;
    let grown_in_s = started.elapsed().as_secs_f64();
    // The service reads partners and products at its start.
    deployment.shut_down()?;
    deployment.restart()?;
    runtime.block_on(deployment.wait_until_ready())?;
    say("prefilled database");
    let grown = run_scenario(scenario, &mut deployment, options)?;
    deployment.stop()?;
    Ok(GrownReport {
        growth,
        grown_in_s,
        ratios: ratios(&empty, &grown),
        empty,
        grown,
    })
}

/// Selects a metric of a report.
type MetricSelector = fn(&Report) -> Option<f64>;

const METRICS: [(&str, MetricSelector); 10] = [
    ("orders/s", |report| Some(report.metrics.orders_per_s)),
    ("p50, µs", |report| Some(report.metrics.latency_us.p50 as f64)),
    ("p99, µs", |report| Some(report.metrics.latency_us.p99 as f64)),
    ("p99.9, µs", |report| {
        Some(report.metrics.latency_us.p99_9 as f64)
    }),
    ("CPU of the service, µs per order", |report| {
        report.usage.costs.as_ref()?.cpu_us(Component::Service)
    }),
    ("CPU of Postgres, µs per order", |report| {
        report.usage.costs.as_ref()?.cpu_us(Component::Postgres)
    }),
    ("WAL, bytes per order", |report| {
        Some(report.usage.costs.as_ref()?.wal?.bytes)
    }),
    ("memory, max, KiB", |report| {
        Some(report.usage.memory?.max_kib as f64)
    }),
    ("replays/s after a restart", |report| {
        Some(report.follow_up.replayed.as_ref()?.replays.per_s)
    }),
    ("restart to first order, median, ms", |report| {
        Some(report.follow_up.restarts.as_ref()?.median_ms)
    }),
];

fn ratios(empty: &Report, grown: &Report) -> Vec<Ratio> {
    let ratio = |(metric, select_metric): (&'static str, MetricSelector)| {
        let (empty, grown) = (select_metric(empty)?, select_metric(grown)?);
        Some(Ratio {
            metric,
            empty,
            grown,
            ratio: grown / empty,
        })
    };
    METRICS.into_iter().filter_map(ratio).collect()
}

impl fmt::Display for GrownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "empty database\n\n{}\nprefilled database\n\n{}",
            self.empty, self.grown
        )?;
        writeln!(f, "\n{}, inserted in {:.0} s", self.growth, self.grown_in_s)?;
        writeln!(f, "{:<44}{:>12}{:>12}{:>10}", "", "empty", "grown", "ratio")?;
        self.ratios.iter().try_for_each(|ratio| {
            let Ratio {
                metric,
                empty,
                grown,
                ratio,
            } = ratio;
            writeln!(f, "{metric:<44}{empty:>12.1}{grown:>12.1}{ratio:>10.2}")
        })
    }
}
