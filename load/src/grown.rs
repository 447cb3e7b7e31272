//! What does a grown database cost? One scenario on an empty stand and on one that was filled before, one after the other,
//! and how the second stands to the first.

use std::fmt;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use crate::costs::Component;
use crate::prefill::{PrefillSizes, prefill_database};
use crate::scenario_run::{GeneratorOptions, run_scenario};
use crate::report::Report;
use crate::scenario::Scenario;
use crate::deployment::TestDeployment;
use crate::deployment::postgres::SERVICE_DATABASE;

/// Both runs.
#[derive(Clone, Debug, Serialize)]
pub struct GrownReport {
    /// What was put there.
    pub growth: PrefillSizes,
    /// How long that took, in seconds.
    pub grown_in_s: f64,
    /// On an empty database.
    pub empty: Report,
    /// On the grown one.
    pub grown: Report,
    /// How the second stands to the first.
    pub ratios: Vec<Ratio>,
}

/// One figure of both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// What it is of.
    pub of: &'static str,
    /// On an empty database.
    pub empty: f64,
    /// On the grown one.
    pub grown: f64,
    /// The second by the first.
    pub ratio: f64,
}

impl GrownReport {
    /// Whether both audits passed.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.empty.audit.has_passed() && self.grown.audit.has_passed()
    }
}

/// Plays on both. Blocks.
///
/// # Errors
/// When a stand could not be started, filled or played on.
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
    say("on an empty database");
    let mut stand = runtime.block_on(TestDeployment::start(program))?;
    let empty = run_scenario(scenario, &mut stand, options)?;
    stand.stop()?;

    say(&format!("putting there {growth}"));
    let mut stand = runtime.block_on(TestDeployment::start(program))?;
    let began = Instant::now();
    let superuser = stand.postgres()?.superuser_options().database(SERVICE_DATABASE);
    runtime.block_on(prefill_database(&superuser, &growth))?;
    let grown_in_s = began.elapsed().as_secs_f64();
    // A start knows of what was put there.
    stand.shut_down()?;
    stand.restart()?;
    runtime.block_on(stand.wait_until_ready())?;
    say("on the grown one");
    let grown = run_scenario(scenario, &mut stand, options)?;
    stand.stop()?;
    Ok(GrownReport {
        growth,
        grown_in_s,
        ratios: ratios(&empty, &grown),
        empty,
        grown,
    })
}

/// One figure of a report.
type Figure = fn(&Report) -> Option<f64>;

/// What is compared.
const FIGURES: [(&str, Figure); 10] = [
    ("orders/s", |report| Some(report.metrics.orders_per_s)),
    ("p50, µs", |report| Some(report.metrics.latency_us.p50 as f64)),
    ("p99, µs", |report| Some(report.metrics.latency_us.p99 as f64)),
    ("p99.9, µs", |report| {
        Some(report.metrics.latency_us.p99_9 as f64)
    }),
    ("CPU of the service, µs an order", |report| {
        report.usage.costs.as_ref()?.cpu_us(Component::Service)
    }),
    ("CPU of Postgres, µs an order", |report| {
        report.usage.costs.as_ref()?.cpu_us(Component::Postgres)
    }),
    ("log, bytes an order", |report| {
        Some(report.usage.costs.as_ref()?.log?.bytes)
    }),
    ("memory, most, KiB", |report| {
        Some(report.usage.memory?.max_kib as f64)
    }),
    ("replays/s after a restart", |report| {
        Some(report.follow_up.replayed.as_ref()?.replays.per_s)
    }),
    ("restart until the first order, median, ms", |report| {
        Some(report.follow_up.restarts.as_ref()?.median_ms)
    }),
];

fn ratios(empty: &Report, grown: &Report) -> Vec<Ratio> {
    let ratio = |(of, figure): (&'static str, Figure)| {
        let (empty, grown) = (figure(empty)?, figure(grown)?);
        Some(Ratio {
            of,
            empty,
            grown,
            ratio: grown / empty,
        })
    };
    FIGURES.into_iter().filter_map(ratio).collect()
}

impl fmt::Display for GrownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "on an empty database\n\n{}\non a grown one\n\n{}",
            self.empty, self.grown
        )?;
        writeln!(f, "\n{}, put there in {:.0} s", self.growth, self.grown_in_s)?;
        writeln!(f, "{:<44}{:>12}{:>12}{:>10}", "", "empty", "grown", "ratio")?;
        self.ratios.iter().try_for_each(|ratio| {
            let Ratio {
                of,
                empty,
                grown,
                ratio,
            } = ratio;
            writeln!(f, "{of:<44}{empty:>12.1}{grown:>12.1}{ratio:>10.2}")
        })
    }
}
