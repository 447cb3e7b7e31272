//! Metrics of a run: rates, latencies and outcomes.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::result::RunResult;
use crate::resources::costs::format_value;
use crate::tally::histogram::millis;
use crate::tally::latency_breakdown::FormStats;
use crate::tally::open_loop::OfferedLoad;
use crate::tally::timeline::Series;
use crate::tally::{BackgroundStats, Outcomes, Tally};

/// A rejection within this time counts as prompt, in milliseconds.
const PROMPT_REFUSAL_MS: u64 = 50;

/// Points of the percentiles per halving of the distance to 100 %.
const POINTS_PER_HALVING: u32 = 5;

/// Configuration of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Setup {
    pub url: String,
    pub order: String,
    pub pace: String,
    pub seed: u64,
    pub forms: Vec<String>,
    pub threads: usize,
    pub warm_up_s: u64,
    /// Length of the measured part: a time or a number of orders.
    pub length: String,
}

/// Latency in milliseconds, to the last byte of the response. Begins with the send in a closed loop and with
/// the due time in an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
}

/// Metrics of background requests (duplicates and reads).
#[derive(Clone, Debug, Serialize)]
pub struct RequestMetrics {
    /// Successful requests per second.
    pub per_s: f64,
    pub latency_ms: Latency,
    pub outcomes: BTreeMap<String, u64>,
}

/// Metrics of the orders of one form.
#[derive(Clone, Debug, Serialize)]
pub struct FormMetrics {
    pub form: String,
    pub per_s: f64,
    pub vouchers_per_s: f64,
    pub latency_ms: Latency,
}

/// Metrics of the rejections with one status.
#[derive(Clone, Debug, Serialize)]
pub struct RefusalMetrics {
    pub count: u64,
    pub per_s: f64,
    pub latency_ms: Latency,
    /// Share of rejections within [`PROMPT_REFUSAL_MS`], from 0 to 1.
    pub prompt_share: f64,
}

/// Metrics of a run, computed before the audit consumes the acknowledgements.
#[derive(Clone, Debug, Serialize)]
pub struct RunMetrics {
    pub setup: Setup,
    /// Seconds from the end of the warm-up to the completion of the last order.
    pub measured_s: f64,
    /// Acknowledged orders of the measured part.
    pub orders: u64,
    pub orders_per_s: f64,
    pub vouchers_per_s: f64,
    /// Share of the measured orders without a 2xx response, from 0 to 1.
    pub failed_share: f64,
    /// Offered and achieved rates of an open loop; `None` for a closed loop.
    pub offered_load: Option<OfferedLoad>,
    pub latency_ms: Latency,
    /// Latency of acknowledged orders in milliseconds by percentile.
    pub percentiles: Vec<(f64, f64)>,
    /// Throughput and latency over time.
    pub series: Series,
    /// One per order form; empty with a single form.
    pub forms: Vec<FormMetrics>,
    pub refusals: BTreeMap<u16, RefusalMetrics>,
    /// Send delay of an open loop, included in the latency; `None` for a closed loop.
    pub send_delay_ms: Option<Latency>,
    /// The part of the send delay in which a connection was free: the generator itself was late.
    pub generator_delay_ms: Option<Latency>,
    pub outcomes: BTreeMap<String, u64>,
    pub warm_up_outcomes: BTreeMap<String, u64>,
    pub background: BTreeMap<String, RequestMetrics>,
    pub errors: BTreeMap<String, String>,
    /// Latencies in microseconds by kind of request, and the send delay of an open loop.
    #[serde(skip)]
    pub histograms: BTreeMap<String, Histogram<u64>>,
}

impl RunMetrics {
    #[must_use]
    pub fn from_run(setup: Setup, result: &RunResult) -> Self {
        let RunResult {
            tally, measured_for, ..
        } = result;
        let orders = tally.latency_us.len();
        let sent: u64 = tally.measured.values().map(|outcome| outcome.count).sum();
        let vouchers = tally.breakdown.forms.values().map(|form| form.vouchers).sum();
        let forms = match setup.forms.len() {
            0 | 1 => Vec::new(),
            _ => form_metrics(&setup.forms, tally, *measured_for),
        };
        Self {
            setup,
            measured_s: measured_for.as_secs_f64(),
            orders,
            orders_per_s: per_second(orders, *measured_for),
            vouchers_per_s: per_second(vouchers, *measured_for),
            failed_share: (sent - orders) as f64 / sent.max(1) as f64,
            offered_load: result.offered,
            latency_ms: latency(&tally.latency_us),
            percentiles: percentiles(&tally.latency_us),
            series: tally.timeline.series(result.loaded_for, *measured_for),
            forms,
            refusals: refusals(tally, *measured_for),
            send_delay_ms: (!tally.send_delay_us.is_empty()).then(|| latency(&tally.send_delay_us)),
            generator_delay_ms: (!tally.generator_delay_us.is_empty())
                .then(|| latency(&tally.generator_delay_us)),
            outcomes: counts(&tally.measured),
            warm_up_outcomes: counts(&tally.warm_up),
            background: background(tally, *measured_for),
            errors: errors(tally),
            histograms: histograms(tally),
        }
    }
}

/// Columns of the table of rates and latencies.
pub(crate) const LATENCY_COLUMNS: [&str; 7] = [
    "",
    "per s",
    "p50, ms",
    "p90, ms",
    "p99, ms",
    "p99.9, ms",
    "max, ms",
];

impl RunMetrics {
    /// Cells of the table of rates and latencies, one row per kind of request.
    pub(crate) fn latency_rows(&self) -> Vec<[String; 7]> {
        let mut rows = vec![latency_row("orders", Some(self.orders_per_s), &self.latency_ms)];
        if let Some(delay) = &self.send_delay_ms {
            rows.push(latency_row("of which send delay", None, delay));
        }
        for form in &self.forms {
            let name = format!("orders of {}, {:.0} vouchers/s", form.form, form.vouchers_per_s);
            rows.push(latency_row(&name, Some(form.per_s), &form.latency_ms));
        }
        for (status, refused) in &self.refusals {
            let prompt = refused.prompt_share * 100.0;
            let name = format!("rejected with {status}, {prompt:.2} % within {PROMPT_REFUSAL_MS} ms");
            rows.push(latency_row(&name, Some(refused.per_s), &refused.latency_ms));
        }
        let background = self.background.iter();
        rows.extend(background.map(|(kind, stats)| latency_row(kind, Some(stats.per_s), &stats.latency_ms)));
        rows
    }

    /// Outcomes of all requests, and the first error of each kind.
    pub(crate) fn outcome_rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![
            ("outcomes", format_counts(&self.outcomes)),
            ("warm-up outcomes", format_counts(&self.warm_up_outcomes)),
        ];
        let background = self.background.iter();
        rows.extend(background.map(|(kind, stats)| {
            (
                "reads and replays",
                format!("{kind}: {}", format_counts(&stats.outcomes)),
            )
        }));
        rows.extend(
            self.errors
                .iter()
                .map(|(kind, text)| ("first error", format!("{kind}: {text}"))),
        );
        rows
    }
}

fn latency_row(name: &str, per_s: Option<f64>, latency: &Latency) -> [String; 7] {
    let Latency {
        p50,
        p90,
        p99,
        p99_9,
        max,
    } = *latency;
    let [p50, p90, p99, p99_9, max] = [p50, p90, p99, p99_9, max].map(|ms| format_value(Some(ms)));
    let per_s = per_s.map_or_else(String::new, |per_s| format!("{per_s:.0}"));
    [name.to_owned(), per_s, p50, p90, p99, p99_9, max]
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [_, _, p50, p90, p99, p99_9, max] = latency_row("", None, self);
        write!(f, "p50 {p50}  p90 {p90}  p99 {p99}  p99.9 {p99_9}  max {max}")
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.url, self.order)?;
        writeln!(
            f,
            "{}, {} generator threads, seed {}, warm-up {} s, length {}",
            self.pace, self.threads, self.seed, self.warm_up_s, self.length
        )
    }
}

impl fmt::Display for RunMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (orders, seconds) = (self.orders, self.measured_s);
        writeln!(
            f,
            "{}\n{:.0} orders/s  ({orders} acknowledged in {seconds:.2} s), {:.0} vouchers/s, {:.2} % not acknowledged",
            self.setup,
            self.orders_per_s,
            self.vouchers_per_s,
            self.failed_share * 100.0
        )?;
        if let Some(offered) = &self.offered_load {
            writeln!(f, "{offered}")?;
        }
        writeln!(f)?;
        let head = LATENCY_COLUMNS.map(str::to_owned);
        for [name, figures @ ..] in std::iter::once(head).chain(self.latency_rows()) {
            write!(f, "{name:<48}")?;
            figures.iter().try_for_each(|figure| write!(f, "{figure:>11}"))?;
            writeln!(f)?;
        }
        writeln!(f)?;
        let mut rows = self.outcome_rows().into_iter();
        rows.try_for_each(|(name, text)| writeln!(f, "{name}: {text}"))
    }
}

fn format_counts(counts: &BTreeMap<String, u64>) -> String {
    let counts: Vec<String> = counts
        .iter()
        .map(|(kind, count)| format!("{kind} × {count}"))
        .collect();
    if counts.is_empty() {
        "none".to_owned()
    } else {
        counts.join(", ")
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
    let at = |quantile| millis(of.value_at_quantile(quantile));
    Latency {
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p99_9: at(0.999),
        max: millis(of.max()),
    }
}

/// Five points from the median to p75, as many from there to p87.5, and so on to the maximum.
fn percentiles(of: &Histogram<u64>) -> Vec<(f64, f64)> {
    let points = of.iter_quantiles(POINTS_PER_HALVING);
    points
        .map(|point| {
            (
                point.quantile_iterated_to() * 100.0,
                millis(point.value_iterated_to()),
            )
        })
        .collect()
}

fn histograms(tally: &Tally) -> BTreeMap<String, Histogram<u64>> {
    let orders = [("order", &tally.latency_us), ("send-delay", &tally.send_delay_us)];
    let orders = orders.map(|(kind, histogram)| (kind.to_owned(), histogram));
    let background = tally.background.iter();
    let background = background.map(|(kind, stats)| (kind.to_string(), &stats.latency_us));
    orders
        .into_iter()
        .chain(background)
        .filter(|(_, histogram)| !histogram.is_empty())
        .map(|(kind, histogram)| (kind, histogram.clone()))
        .collect()
}

fn counts(outcomes: &Outcomes) -> BTreeMap<String, u64> {
    outcomes
        .iter()
        .map(|(kind, count)| (kind.to_string(), count.count))
        .collect()
}

/// Computes metrics of background requests over the elapsed `time`.
pub(crate) fn request_metrics(background: &BackgroundStats, time: Duration) -> RequestMetrics {
    RequestMetrics {
        per_s: per_second(background.latency_us.len(), time),
        latency_ms: latency(&background.latency_us),
        outcomes: counts(&background.measured),
    }
}

fn background(tally: &Tally, time: Duration) -> BTreeMap<String, RequestMetrics> {
    let kinds = tally.background.iter();
    kinds
        .map(|(kind, background)| (kind.to_string(), request_metrics(background, time)))
        .collect()
}

fn form_metrics(names: &[String], tally: &Tally, time: Duration) -> Vec<FormMetrics> {
    let metrics = |(index, form): (&usize, &FormStats)| {
        Some(FormMetrics {
            form: names.get(*index)?.clone(),
            per_s: per_second(form.latency_us.len(), time),
            vouchers_per_s: per_second(form.vouchers, time),
            latency_ms: latency(&form.latency_us),
        })
    };
    tally.breakdown.forms.iter().filter_map(metrics).collect()
}

fn refusals(tally: &Tally, time: Duration) -> BTreeMap<u16, RefusalMetrics> {
    let metrics = |of: &Histogram<u64>| RefusalMetrics {
        count: of.len(),
        per_s: per_second(of.len(), time),
        latency_ms: latency(of),
        prompt_share: of.count_between(0, PROMPT_REFUSAL_MS * 1_000) as f64 / of.len().max(1) as f64,
    };
    let statuses = tally.breakdown.refusals.iter();
    statuses.map(|(status, of)| (*status, metrics(of))).collect()
}

fn errors(tally: &Tally) -> BTreeMap<String, String> {
    let background = tally
        .background
        .values()
        .flat_map(|background| &background.measured);
    let kinds = tally.measured.iter().chain(&tally.warm_up).chain(background);
    kinds
        .filter_map(|(kind, count)| Some((kind.to_string(), count.example.clone()?)))
        .collect()
}
