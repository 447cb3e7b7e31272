//! Latency recovery after pauses of Postgres: p99 before the pauses and in windows of 100 ms after them, over all
//! pauses.
//!
//! Rule: an order belongs to the window in which it was due, however late the response came.

use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::tally::run_history::LatencySample;

const WINDOW: Duration = Duration::from_millis(100);

/// At most so many windows after each pause.
const WINDOWS: u32 = 20;

/// Orders due from 600 to 100 ms before a pause form the baseline.
const BEFORE_FROM: Duration = Duration::from_millis(600);
/// Excludes orders that were still in flight when the pause began.
const BEFORE_UNTIL: Duration = Duration::from_millis(100);

/// Latency has recovered when p99 is at most this multiple of the baseline.
const RECOVERED_FACTOR: u64 = 2;

/// Target for the recovery.
const TARGET_MS: u64 = 1_000;

/// Interval in which Postgres was paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    pub from: Instant,
    pub until: Instant,
}

/// Orders that were due in one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Window {
    /// Start, in milliseconds after the end of the pause.
    pub from_ms: u64,
    pub orders: usize,
    /// 99th percentile of their latency, in microseconds.
    pub p99_us: u64,
    pub max_us: u64,
}

/// Latency before and after pauses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PauseRecovery {
    pub pauses: usize,
    /// 99th percentile before the pauses, in microseconds.
    pub before_p99_us: u64,
    pub windows: Vec<Window>,
    /// Start of the first window with recovered latency; `None` if there is none.
    #[serde(rename = "as_before_ms")]
    pub recovered_after_ms: Option<u64>,
}

impl PauseRecovery {
    /// Returns `None` if no order was due before a pause or after one.
    #[must_use]
    pub fn measure(pauses: &[Pause], samples: &[LatencySample]) -> Option<Self> {
        let due_within = |from: Option<Instant>, until: Option<Instant>| {
            let span = from.zip(until);
            let within = move |sample: &&LatencySample| {
                span.is_some_and(|(from, until)| sample.due >= from && sample.due < until)
            };
            samples.iter().filter(within).map(|sample| micros(sample.latency))
        };
        let mut before = Vec::new();
        for pause in pauses {
            let (from, until) = (
                pause.from.checked_sub(BEFORE_FROM),
                pause.from.checked_sub(BEFORE_UNTIL),
            );
            before.extend(due_within(from, until));
        }
        let before_p99_us = p99(&mut before)?;
        let mut windows = Vec::new();
        for number in 0..WINDOWS {
            let mut latencies = Vec::new();
            for (index, pause) in pauses.iter().enumerate() {
                let from = pause.until + WINDOW * number;
                let next = pauses.get(index + 1).map(|next| next.from);
                // Orders due just before the next pause may have been delayed by it.
                if next.is_none_or(|next| from + WINDOW + BEFORE_UNTIL <= next) {
                    latencies.extend(due_within(Some(from), Some(from + WINDOW)));
                }
            }
            let orders = latencies.len();
            let Some(p99_us) = p99(&mut latencies) else {
                break;
            };
            windows.push(Window {
                from_ms: u64::from(number) * 100,
                orders,
                p99_us,
                max_us: latencies.last().copied().unwrap_or_default(),
            });
        }
        let recovered_after_ms = windows
            .iter()
            .find(|window| window.p99_us <= before_p99_us * RECOVERED_FACTOR)
            .map(|window| window.from_ms);
        (!windows.is_empty()).then_some(Self {
            pauses: pauses.len(),
            before_p99_us,
            recovered_after_ms,
            windows,
        })
    }

    /// Whether latency recovered within a second.
    #[must_use]
    pub fn is_within_target(&self) -> bool {
        self.recovered_after_ms.is_some_and(|ms| ms <= TARGET_MS)
    }
}

fn micros(latency: Duration) -> u64 {
    u64::try_from(latency.as_micros()).unwrap_or(u64::MAX)
}

/// Sorts the latencies and returns the 99th percentile.
fn p99(latencies: &mut [u64]) -> Option<u64> {
    latencies.sort_unstable();
    let index = (latencies.len() * 99).div_ceil(100).checked_sub(1)?;
    latencies.get(index).copied()
}

impl fmt::Display for PauseRecovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match (self.recovered_after_ms, self.is_within_target()) {
            (Some(ms), true) => format!("recovered within 1 s: yes, {ms} ms after the end"),
            (Some(ms), false) => format!("recovered within 1 s: no, {ms} ms after the end"),
            (None, _) => "recovered within 1 s: no, never".to_owned(),
        };
        writeln!(
            f,
            "pauses of Postgres: {}; p99 before them {} µs; {outcome} (limit: {RECOVERED_FACTOR} × that p99)",
            self.pauses, self.before_p99_us
        )?;
        write!(f, "p99 in µs by ms after the end of a pause:")?;
        for window in &self.windows {
            write!(f, "  {}: {}", window.from_ms, window.p99_us)?;
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// One order every 10 ms. Orders due in a pause wait for its end; orders due in the 300 ms after it take 90 ms.
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
        assert_eq!(recovery.before_p99_us, 5_000);
        let p99s: Vec<_> = recovery.windows[..4].iter().map(|window| window.p99_us).collect();
        assert_eq!(p99s, [90_000, 90_000, 90_000, 5_000]);
        assert_eq!(
            (recovery.recovered_after_ms, recovery.is_within_target()),
            (Some(300), true)
        );
        assert_eq!(recovery.windows[0].orders, 20, "orders of both pauses");
        // The second pause begins 1,500 ms after the first; the run ends 1,000 ms after the second.
        assert_eq!((recovery.windows.len(), recovery.windows[13].orders), (14, 10));
        assert!(recovery.to_string().contains("yes, 300 ms"), "{recovery}");
    }

    #[test]
    fn recovery_without_baseline_p99_is_none() {
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
        assert_eq!(
            (recovery.recovered_after_ms, recovery.is_within_target()),
            (None, false)
        );
        assert!(recovery.to_string().contains("no, never"));
        assert_eq!(PauseRecovery::measure(&[], &samples), None);
    }
}
