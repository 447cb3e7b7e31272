//! Which numbers are taken from a run? Rates, latencies, outcomes, and how all of it went over time.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::latency_breakdown::FormStats;
use crate::run::RunResult;
use crate::tally::{BackgroundStats, Outcomes, Tally};
use crate::timeline::TimelineSecond;

/// Shares of a latency curve. Of the far ones, those are left out behind which less than one order lies.
const SHARES: [f64; 20] = [
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999, 0.9995, 0.9999,
    0.999_95, 0.999_99, 0.999_999,
];

/// Within how many milliseconds a refusal has come soon: what is asked of a service that has too much to do.
pub const PROMPT_REFUSAL_MS: u64 = 50;

/// How the run was set up.
#[derive(Clone, Debug, Serialize)]
pub struct Setup {
    pub url: String,
    /// What was asked for.
    pub order: String,
    /// When requests left, and over how many connections.
    pub pace: String,
    /// When they were signed.
    pub signing: &'static str,
    /// What chance began with.
    pub seed: u64,
    /// The forms of order, in the order of their indexes.
    pub forms: Vec<String>,
    /// Threads of the generator.
    pub threads: usize,
    pub warm_up_s: u64,
}

/// Latency of acknowledged orders, in microseconds: to the last byte of the answer, from the send in a closed loop, and
/// from when it was due in an open one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
    pub max: u64,
}

/// One point of a latency curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentile {
    /// This share of the orders, from 0 to 1,
    pub share: f64,
    /// took no longer than so many microseconds.
    pub us: u64,
}

/// What was seen of requests other than new orders.
#[derive(Clone, Debug, Serialize)]
pub struct RequestMetrics {
    /// Those that succeeded, per second.
    pub per_s: f64,
    pub latency_us: Latency,
    /// Outcomes by status and error code.
    pub outcomes: BTreeMap<String, u64>,
}

/// What was seen of orders of one form.
#[derive(Clone, Debug, Serialize)]
pub struct FormMetrics {
    /// What they ask for.
    pub form: String,
    /// Those that were acknowledged, per second.
    pub per_s: f64,
    /// The vouchers in them, per second.
    pub vouchers_per_s: f64,
    pub latency_us: Latency,
}

/// How soon refusals of one status came.
#[derive(Clone, Debug, Serialize)]
pub struct RefusalMetrics {
    pub count: u64,
    pub per_s: f64,
    pub latency_us: Latency,
    /// The share of those that came within [`SOON_MS`], from 0 to 1.
    pub soon: f64,
}

/// The figures of a run, taken before its books go to the audit.
#[derive(Clone, Debug, Serialize)]
pub struct RunMetrics {
    /// How it was set up.
    pub setup: Setup,
    /// From the end of the warm-up to the end of the last order, in seconds.
    pub measured_s: f64,
    /// Acknowledged orders that were sent after the warm-up.
    pub orders: u64,
    pub orders_per_s: f64,
    /// The vouchers in them, per second.
    pub vouchers_per_s: f64,
    pub latency_us: Latency,
    /// The same by form of order; nothing where there is one form alone.
    pub forms: Vec<FormMetrics>,
    /// Latency of answers other than 2xx, by status.
    pub refusals: BTreeMap<u16, RefusalMetrics>,
    /// The same as a curve.
    pub percentiles: Vec<Percentile>,
    /// How late requests of an open loop left, which is part of their latency; `None` of a closed one.
    pub late_us: Option<Latency>,
    /// The measured part, second by second.
    pub seconds: Vec<TimelineSecond>,
    /// Measured outcomes by status and error code.
    pub outcomes: BTreeMap<String, u64>,
    /// Outcomes of the warm-up.
    pub warm_up_outcomes: BTreeMap<String, u64>,
    /// What was asked for besides new orders.
    pub beside: BTreeMap<String, RequestMetrics>,
    /// The first text of each kind of error, of run and warm-up.
    pub errors: BTreeMap<String, String>,
}

impl RunMetrics {
    /// Takes the figures of a run.
    #[must_use]
    pub fn from_run(setup: Setup, ran: &RunResult) -> Self {
        let RunResult {
            tally, measured_for, ..
        } = ran;
        let orders = tally.latency_us.len();
        let vouchers = tally.breakdown.forms.values().map(|form| form.vouchers).sum();
        let forms = match setup.forms.len() {
            0 | 1 => Vec::new(),
            _ => forms(&setup.forms, tally, *measured_for),
        };
        Self {
            setup,
            measured_s: measured_for.as_secs_f64(),
            orders,
            orders_per_s: per_second(orders, *measured_for),
            vouchers_per_s: per_second(vouchers, *measured_for),
            latency_us: latency(&tally.latency_us),
            forms,
            refusals: refusals(tally, *measured_for),
            percentiles: percentiles(&tally.latency_us),
            late_us: (!tally.late_us.is_empty()).then(|| latency(&tally.late_us)),
            seconds: tally.timeline.seconds().to_vec(),
            outcomes: counts(&tally.measured),
            warm_up_outcomes: counts(&tally.warm_up),
            beside: beside(tally, *measured_for),
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

fn latency(of: &Histogram<u64>) -> Latency {
    let at = |quantile| of.value_at_quantile(quantile);
    Latency {
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p99_9: at(0.999),
        max: of.max(),
    }
}

fn percentiles(of: &Histogram<u64>) -> Vec<Percentile> {
    let count = of.len() as f64;
    SHARES
        .into_iter()
        .filter(|share| (1.0 - share) * count >= 1.0)
        .map(|share| Percentile {
            share,
            us: of.value_at_quantile(share),
        })
        .collect()
}

fn counts(outcomes: &Outcomes) -> BTreeMap<String, u64> {
    outcomes
        .iter()
        .map(|(kind, seen)| (kind.to_string(), seen.count))
        .collect()
}

/// The figures of requests other than new orders, which were asked for so long.
#[must_use]
pub fn request_metrics(beside: &BackgroundStats, time: Duration) -> RequestMetrics {
    RequestMetrics {
        per_s: per_second(beside.latency_us.len(), time),
        latency_us: latency(&beside.latency_us),
        outcomes: counts(&beside.measured),
    }
}

fn beside(tally: &Tally, time: Duration) -> BTreeMap<String, RequestMetrics> {
    let kinds = tally.background.iter();
    kinds
        .map(|(kind, beside)| (kind.to_string(), request_metrics(beside, time)))
        .collect()
}

fn forms(names: &[String], tally: &Tally, time: Duration) -> Vec<FormMetrics> {
    let figures = |(index, form): (&usize, &FormStats)| {
        Some(FormMetrics {
            form: names.get(*index)?.clone(),
            per_s: per_second(form.latency_us.len(), time),
            vouchers_per_s: per_second(form.vouchers, time),
            latency_us: latency(&form.latency_us),
        })
    };
    tally.breakdown.forms.iter().filter_map(figures).collect()
}

fn refusals(tally: &Tally, time: Duration) -> BTreeMap<u16, RefusalMetrics> {
    let figures = |of: &Histogram<u64>| RefusalMetrics {
        count: of.len(),
        per_s: per_second(of.len(), time),
        latency_us: latency(of),
        soon: of.count_between(0, PROMPT_REFUSAL_MS * 1_000) as f64 / of.len().max(1) as f64,
    };
    let statuses = tally.breakdown.refusals.iter();
    statuses.map(|(status, of)| (*status, figures(of))).collect()
}

fn errors(tally: &Tally) -> BTreeMap<String, String> {
    let beside = tally.background.values().flat_map(|beside| &beside.measured);
    let kinds = tally.measured.iter().chain(&tally.warm_up).chain(beside);
    kinds
        .filter_map(|(kind, seen)| Some((kind.to_string(), seen.example.clone()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_ends_where_no_order_lies_behind() {
        let mut histogram = Histogram::new_with_bounds(1, 1_000_000, 3).unwrap();
        assert!(percentiles(&histogram).is_empty());
        for us in 1..=100 {
            histogram.record(us).unwrap();
        }
        let curve = percentiles(&histogram);
        let last = curve.last().unwrap();
        assert_eq!((curve[5].us, last.us), (50, 99));
        assert!((last.share - 0.99).abs() < 1e-9);
        assert!(curve.windows(2).all(|pair| pair[0].us <= pair[1].us));
    }
}
