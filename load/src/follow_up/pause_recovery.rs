//! Latency recovery after pauses of Postgres: p99 before the pauses and in windows of 100 ms after them, over
//! all pauses.
//!
//! Rule: an order belongs to the window in which it was due, however late the response came.

use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::resources::costs::format_value;
use crate::tally::run_history::LatencySample;

const WINDOW: Duration = Duration::from_millis(100);

/// Maximum number of windows after each pause.
const WINDOWS: u32 = 20;

/// Orders due from 600 to 100 ms before a pause form the baseline.
const BASELINE_START: Duration = Duration::from_millis(600);
/// Excludes orders that were still in flight when the pause began.
const BASELINE_END: Duration = Duration::from_millis(100);

/// Latency has recovered when p99 is at most this multiple of the baseline.
const RECOVERED_FACTOR: f64 = 2.0;

/// Interval in which Postgres was paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    pub from: Instant,
    pub until: Instant,
}

/// Latency before and after pauses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PauseRecovery {
    /// 99th percentile before the pauses, in milliseconds.
    pub baseline_p99_ms: f64,
    /// 99th percentile in each window after the pauses, in milliseconds.
    pub window_p99_ms: Vec<f64>,
    /// Start of the first window with recovered latency; `None` if there is none.
    pub recovered_after_ms: Option<u64>,
}

impl PauseRecovery {
    /// Returns `None` if no order was due before a pause or after one.
    pub(crate) fn measure(pauses: &[Pause], samples: &[LatencySample]) -> Option<Self> {
        let due_within = |from: Instant, until: Instant| {
            let within = move |sample: &&LatencySample| sample.due >= from && sample.due < until;
            samples.iter().filter(within).map(|sample| sample.latency)
        };
        let baseline = pauses.iter().flat_map(|pause| {
            let span = pause.from.checked_sub(BASELINE_START);
            let span = span.zip(pause.from.checked_sub(BASELINE_END));
            span.into_iter().flat_map(|(from, until)| due_within(from, until))
        });
        let baseline_p99_ms = p99_ms(baseline)?;
        let window = |number: u32| {
            let after_pauses = pauses.iter().enumerate().flat_map(|(index, pause)| {
                let from = pause.until + WINDOW * number;
                // Orders due just before the next pause may have been delayed by it.
                let is_clear = pauses
                    .get(index + 1)
                    .is_none_or(|next| from + WINDOW + BASELINE_END <= next.from);
                is_clear
                    .then(|| due_within(from, from + WINDOW))
                    .into_iter()
                    .flatten()
            });
            p99_ms(after_pauses)
        };
        let window_p99_ms: Vec<f64> = (0..WINDOWS).map_while(window).collect();
        let limit = baseline_p99_ms * RECOVERED_FACTOR;
        let recovered_window = window_p99_ms.iter().position(|p99| *p99 <= limit);
        (!window_p99_ms.is_empty()).then_some(Self {
            baseline_p99_ms,
            window_p99_ms,
            recovered_after_ms: recovered_window.map(|number| number as u64 * 100),
        })
    }
}

/// The 99th percentile, in milliseconds.
fn p99_ms(latencies: impl Iterator<Item = Duration>) -> Option<f64> {
    let mut latencies: Vec<Duration> = latencies.collect();
    latencies.sort_unstable();
    let index = (latencies.len() * 99).div_ceil(100).checked_sub(1)?;
    Some(latencies.get(index)?.as_secs_f64() * 1_000.0)
}

impl fmt::Display for PauseRecovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recovered = match self.recovered_after_ms {
            Some(ms) => format!("recovered {ms} ms after the pause"),
            None => "not recovered".to_owned(),
        };
        let baseline = format_value(Some(self.baseline_p99_ms));
        let windows: Vec<_> = self
            .window_p99_ms
            .iter()
            .map(|ms| format_value(Some(*ms)))
            .collect();
        write!(
            f,
            "pauses of Postgres: p99 before them {baseline} ms, {recovered} (limit: {RECOVERED_FACTOR} × that p99), p99 by \
             100 ms after them, ms: {}",
            windows.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// One order every 10 ms. Orders due in a pause wait for its end; orders due in the 300 ms after it take
    /// 90 ms.
    fn run(pauses: &[Pause], start: Instant) -> Vec<LatencySample> {
        let latency = |due: Instant| {
            let paused = pauses
                .iter()
                .find(|pause| due >= pause.from && due < pause.until + MS(300));
            match paused {
                Some(pause) if due < pause.until => pause.until - due,
                Some(_) => MS(90),
                None => MS(5),
            }
        };
        (0..500)
            .map(|number| start + MS(number * 10))
            .map(|due| LatencySample {
                due,
                latency: latency(due),
            })
            .collect()
    }

    #[test]
    fn recovery_reports_first_window_with_baseline_p99() {
        let start = Instant::now();
        let pauses = [1_500, 3_500].map(|ms| Pause {
            from: start + MS(ms),
            until: start + MS(ms + 500),
        });
        let recovery = PauseRecovery::measure(&pauses, &run(&pauses, start)).unwrap();
        assert_eq!(recovery.baseline_p99_ms, 5.0);
        assert_eq!(recovery.window_p99_ms[..4], [90.0, 90.0, 90.0, 5.0]);
        assert_eq!(recovery.recovered_after_ms, Some(300));
        // The second pause begins 1,500 ms after the first one ends; the run ends 1,000 ms after the second.
        assert_eq!(recovery.window_p99_ms.len(), 14);
    }

    #[test]
    fn latency_above_limit_has_not_recovered() {
        let start = Instant::now();
        let pause = Pause {
            from: start + MS(1_000),
            until: start + MS(1_500),
        };
        let mut samples = run(&[pause], start);
        for sample in &mut samples {
            if sample.due >= pause.until {
                sample.latency = MS(50);
            }
        }
        let recovery = PauseRecovery::measure(&[pause], &samples).unwrap();
        assert_eq!(recovery.recovered_after_ms, None);
        assert_eq!(PauseRecovery::measure(&[], &samples), None);
    }
}
