//! What does a run say about the service? Figures, outcomes, audit and database, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::audit::Audit;
use crate::database::DatabaseFacts;
use crate::run::Ran;
use crate::tally::{Outcomes, Tally};

/// How the run was set up.
#[derive(Clone, Debug, Serialize)]
pub struct Setup {
    /// The service.
    pub url: String,
    /// What each order asked for.
    pub order: String,
    /// Connections, each with one order open at a time.
    pub connections: usize,
    /// Threads of the generator.
    pub threads: usize,
    /// Warm-up, in seconds.
    pub warm_up_s: u64,
}

/// Latency of acknowledged orders, from the send to the last byte of the answer, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p99_9: u64,
    /// Slowest.
    pub max: u64,
}

/// The figures of a run, taken before its books go to the audit.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// How it was set up.
    pub setup: Setup,
    /// From the end of the warm-up to the end of the last order, in seconds.
    pub measured_s: f64,
    /// Acknowledged orders that were sent after the warm-up.
    pub orders: u64,
    /// Those, per second.
    pub orders_per_s: f64,
    /// Their latency.
    pub latency_us: Latency,
    /// Measured outcomes by status and error code.
    pub outcomes: BTreeMap<String, u64>,
    /// Outcomes of the warm-up.
    pub warm_up_outcomes: BTreeMap<String, u64>,
    /// The first text of each kind of error, of run and warm-up.
    pub errors: BTreeMap<String, String>,
}

/// The report of one run: figures do not leave without their audit.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was measured.
    #[serde(flatten)]
    pub figures: Figures,
    /// Whether it counts.
    pub audit: Audit,
    /// The database, if its URL was given.
    pub database: Option<DatabaseFacts>,
}

impl Figures {
    /// Takes the figures of a run.
    #[must_use]
    pub fn of(setup: Setup, ran: &Ran) -> Self {
        let Ran { tally, measured_for } = ran;
        let orders = tally.latency_us.len();
        Self {
            setup,
            measured_s: measured_for.as_secs_f64(),
            orders,
            orders_per_s: per_second(orders, *measured_for),
            latency_us: latency(tally),
            outcomes: counts(&tally.measured),
            warm_up_outcomes: counts(&tally.warm_up),
            errors: errors(tally),
        }
    }
}

fn per_second(orders: u64, time: Duration) -> f64 {
    if time.is_zero() {
        0.0
    } else {
        orders as f64 / time.as_secs_f64()
    }
}

fn latency(tally: &Tally) -> Latency {
    let at = |quantile| tally.latency_us.value_at_quantile(quantile);
    Latency {
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p99_9: at(0.999),
        max: tally.latency_us.max(),
    }
}

fn counts(outcomes: &Outcomes) -> BTreeMap<String, u64> {
    outcomes
        .iter()
        .map(|(kind, seen)| (kind.to_string(), seen.count))
        .collect()
}

fn errors(tally: &Tally) -> BTreeMap<String, String> {
    let kinds = tally.measured.iter().chain(&tally.warm_up);
    kinds
        .filter_map(|(kind, seen)| Some((kind.to_string(), seen.example.clone()?)))
        .collect()
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setup {
            url,
            order,
            connections,
            threads,
            warm_up_s,
        } = &self.setup;
        writeln!(f, "{url}: {order}")?;
        writeln!(
            f,
            "{connections} connections, {threads} generator threads, warm-up {warm_up_s} s"
        )?;
        let (orders, seconds) = (self.orders, self.measured_s);
        writeln!(
            f,
            "\n{:.0} orders/s  ({orders} acknowledged in {seconds:.2} s)",
            self.orders_per_s
        )?;
        let Latency {
            p50,
            p90,
            p99,
            p99_9,
            max,
        } = self.latency_us;
        writeln!(
            f,
            "latency µs  p50 {p50}  p90 {p90}  p99 {p99}  p99.9 {p99_9}  max {max}"
        )?;
        write_counts(f, "outcomes", &self.outcomes)?;
        write_counts(f, "outcomes of the warm-up", &self.warm_up_outcomes)?;
        self.errors
            .iter()
            .try_for_each(|(kind, text)| writeln!(f, "first of {kind}: {text}"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.audit.passed() { "passed" } else { "FAILED" };
        write!(f, "{}\naudit: {verdict}\n{}", self.figures, self.audit)?;
        match &self.database {
            Some(facts) => write!(f, "\ndatabase\n{facts}"),
            None => Ok(()),
        }
    }
}

fn write_counts(f: &mut fmt::Formatter<'_>, title: &str, counts: &BTreeMap<String, u64>) -> fmt::Result {
    let counts: Vec<String> = counts
        .iter()
        .map(|(kind, count)| format!("{kind} × {count}"))
        .collect();
    writeln!(
        f,
        "{title}: {}",
        if counts.is_empty() {
            "none".to_owned()
        } else {
            counts.join(", ")
        }
    )
}
