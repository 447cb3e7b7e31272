//! Metrics of a run: rates, latencies and outcomes.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::result::RunResult;
use crate::tally::latency_breakdown::FormStats;
use crate::tally::{BackgroundStats, Outcomes, Tally};

/// A rejection within this time counts as prompt, in milliseconds.
const PROMPT_REFUSAL_MS: u64 = 50;

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
}

/// Latency of acknowledged orders in microseconds, to the last byte of the response. Begins with the send in a closed
/// loop and with the due time in an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Latency {
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
    pub max: u64,
}

/// Metrics of background requests (duplicates and reads).
#[derive(Clone, Debug, Serialize)]
pub struct RequestMetrics {
    /// Successful requests per second.
    pub per_s: f64,
    pub latency_us: Latency,
    pub outcomes: BTreeMap<String, u64>,
}

/// Metrics of the orders of one form.
#[derive(Clone, Debug, Serialize)]
pub struct FormMetrics {
    pub form: String,
    pub per_s: f64,
    pub vouchers_per_s: f64,
    pub latency_us: Latency,
}

/// Metrics of the rejections with one status.
#[derive(Clone, Debug, Serialize)]
pub struct RefusalMetrics {
    pub count: u64,
    pub per_s: f64,
    pub latency_us: Latency,
    /// Share of rejections within [`PROMPT_REFUSAL_MS`], from 0 to 1.
    pub prompt_share: f64,
}

/// Metrics of a run, computed before the audit consumes the acknowledgements.
#[derive(Clone, Debug, Serialize)]
pub struct RunMetrics {
    pub setup: Setup,
    /// From the end of the warm-up to the completion of the last order, in seconds.
    pub measured_s: f64,
    /// Acknowledged orders of the measured part.
    pub orders: u64,
    pub orders_per_s: f64,
    pub vouchers_per_s: f64,
    pub latency_us: Latency,
    /// By order form; empty with a single form.
    pub forms: Vec<FormMetrics>,
    pub refusals: BTreeMap<u16, RefusalMetrics>,
    /// Send delay of an open loop, included in the latency; `None` for a closed loop.
    pub send_delay_us: Option<Latency>,
    pub outcomes: BTreeMap<String, u64>,
    pub warm_up_outcomes: BTreeMap<String, u64>,
    pub background: BTreeMap<String, RequestMetrics>,
    pub errors: BTreeMap<String, String>,
}

impl RunMetrics {
    #[must_use]
    pub fn from_run(setup: Setup, result: &RunResult) -> Self {
        let RunResult {
            tally, measured_for, ..
        } = result;
        let orders = tally.latency_us.len();
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
            latency_us: latency(&tally.latency_us),
            forms,
            refusals: refusals(tally, *measured_for),
            send_delay_us: (!tally.send_delay_us.is_empty()).then(|| latency(&tally.send_delay_us)),
            outcomes: counts(&tally.measured),
            warm_up_outcomes: counts(&tally.warm_up),
            background: background(tally, *measured_for),
            errors: errors(tally),
        }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            p50,
            p90,
            p99,
            p99_9,
            max,
        } = self;
        write!(f, "p50 {p50}  p90 {p90}  p99 {p99}  p99.9 {p99_9}  max {max}")
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.url, self.order)?;
        writeln!(
            f,
            "{}, {} generator threads, seed {}, warm-up {} s",
            self.pace, self.threads, self.seed, self.warm_up_s
        )
    }
}

impl fmt::Display for RunMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (orders, seconds) = (self.orders, self.measured_s);
        writeln!(
            f,
            "{}\n{:.0} orders/s  ({orders} acknowledged in {seconds:.2} s)",
            self.setup, self.orders_per_s
        )?;
        writeln!(f, "latency µs  {}", self.latency_us)?;
        if let Some(delay) = self.send_delay_us {
            writeln!(f, "  of which send delay  {delay}")?;
        }
        writeln!(f, "{:.0} vouchers/s", self.vouchers_per_s)?;
        for form in &self.forms {
            let (per_s, vouchers) = (form.per_s, form.vouchers_per_s);
            writeln!(
                f,
                "orders of {}: {per_s:.0}/s, {vouchers:.0} vouchers/s, latency µs  {}",
                form.form, form.latency_us
            )?;
        }
        for (status, refused) in &self.refusals {
            let prompt = refused.prompt_share * 100.0;
            writeln!(
                f,
                "rejected with {status}: {:.0}/s, {prompt:.2} % of them within {PROMPT_REFUSAL_MS} ms, latency µs  {}",
                refused.per_s, refused.latency_us
            )?;
        }
        write_counts(f, "outcomes", &self.outcomes)?;
        write_counts(f, "warm-up outcomes", &self.warm_up_outcomes)?;
        for (kind, background) in &self.background {
            writeln!(
                f,
                "{kind}: {:.0}/s, latency µs  {}",
                background.per_s, background.latency_us
            )?;
            write_counts(f, "  outcomes", &background.outcomes)?;
        }
        self.errors
            .iter()
            .try_for_each(|(kind, text)| writeln!(f, "first {kind}: {text}"))
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
        latency_us: latency(&background.latency_us),
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
            latency_us: latency(&form.latency_us),
        })
    };
    tally.breakdown.forms.iter().filter_map(metrics).collect()
}

fn refusals(tally: &Tally, time: Duration) -> BTreeMap<u16, RefusalMetrics> {
    let metrics = |of: &Histogram<u64>| RefusalMetrics {
        count: of.len(),
        per_s: per_second(of.len(), time),
        latency_us: latency(of),
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
