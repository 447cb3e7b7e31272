//! How soon after a pause is everything as it was before? Latencies of what was due just before the pauses, and of what was
//! due after them, in windows of 100 ms, all pauses of a run taken together.
//!
//! Rule: an order counts where it was due. One that was due in the pause has waited it out, however late it was answered.

use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::run_history::LatencySample;

/// Length of a window.
const WINDOW: Duration = Duration::from_millis(100);

/// Windows behind a pause, at most.
const WINDOWS: u32 = 20;

/// What counts as before a pause: due from so long before it…
const BEFORE_FROM: Duration = Duration::from_millis(600);
/// …until so long before it, so that it was answered when the pause began.
const BEFORE_UNTIL: Duration = Duration::from_millis(100);

/// It is as before when p99 is at most so many times what it was.
const AS_BEFORE: u64 = 2;

/// What is aimed at: as before within a second.
const AIM_MS: u64 = 1_000;

/// A time in which Postgres stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    pub from: Instant,
    /// When it was over.
    pub until: Instant,
}

/// What was due in one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Window {
    /// When it begins, in milliseconds after the end of a pause.
    pub from_ms: u64,
    /// Orders that were due in it.
    pub orders: usize,
    /// The 99th percentile of their latency, in microseconds.
    pub p99_us: u64,
    pub max_us: u64,
}

/// What pauses left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PauseRecovery {
    /// How many pauses had a time before and after them.
    pub pauses: usize,
    /// The 99th percentile of what was due before them, in microseconds.
    pub before_p99_us: u64,
    /// What was due after them.
    pub windows: Vec<Window>,
    /// The first window that is as it was before; `None` if none is.
    pub as_before_ms: Option<u64>,
}

impl PauseRecovery {
    /// Of these pauses; `None` if nothing was due before or after one.
    #[must_use]
    pub fn measure(pauses: &[Pause], moments: &[LatencySample]) -> Option<Self> {
        let due_within = |from: Option<Instant>, until: Option<Instant>| {
            let span = from.zip(until);
            let within = move |moment: &&LatencySample| {
                span.is_some_and(|(from, until)| moment.due >= from && moment.due < until)
            };
            moments.iter().filter(within).map(|moment| micros(moment.latency))
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
                // What was due just before the next pause may have been caught by that one.
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
        let as_before = windows
            .iter()
            .find(|window| window.p99_us <= before_p99_us * AS_BEFORE)
            .map(|window| window.from_ms);
        (!windows.is_empty()).then_some(Self {
            pauses: pauses.len(),
            before_p99_us,
            as_before_ms: as_before,
            windows,
        })
    }

    /// Whether everything was as before within a second.
    #[must_use]
    pub fn is_within_target(&self) -> bool {
        self.as_before_ms.is_some_and(|ms| ms <= AIM_MS)
    }
}

fn micros(latency: Duration) -> u64 {
    u64::try_from(latency.as_micros()).unwrap_or(u64::MAX)
}

/// Sorts, and takes the 99th percentile.
fn p99(latencies: &mut [u64]) -> Option<u64> {
    latencies.sort_unstable();
    let index = (latencies.len() * 99).div_ceil(100).checked_sub(1)?;
    latencies.get(index).copied()
}

impl fmt::Display for PauseRecovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match (self.as_before_ms, self.is_within_target()) {
            (Some(ms), true) => format!("back within a second after it: yes, {ms} ms after its end"),
            (Some(ms), false) => format!("back within a second after it: no, {ms} ms after its end"),
            (None, _) => "back within a second after it: no, not at all".to_owned(),
        };
        writeln!(
            f,
            "pauses of Postgres: {}; p99 of what was due before them {} µs; {verdict} (at most {AS_BEFORE} times that)",
            self.pauses, self.before_p99_us
        )?;
        write!(f, "p99, µs, of what was due so many ms after the end of one:")?;
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

    /// An order each 10 ms; those that were due in a pause of 500 ms waited it out, and those of 300 ms after it took long.
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
    fn windows_tell_when_everything_is_as_it_was() {
        let start = Instant::now();
        let pauses = [1_500, 3_500].map(|ms| Pause {
            from: start + MS(ms),
            until: start + MS(ms + 500),
        });
        let aftermath = PauseRecovery::measure(&pauses, &run(&pauses, start)).unwrap();
        assert_eq!(aftermath.before_p99_us, 5_000);
        let p99s: Vec<_> = aftermath.windows[..4]
            .iter()
            .map(|window| window.p99_us)
            .collect();
        assert_eq!(p99s, [90_000, 90_000, 90_000, 5_000]);
        assert_eq!((aftermath.as_before_ms, aftermath.is_within_target()), (Some(300), true));
        assert_eq!(aftermath.windows[0].orders, 20, "of both pauses");
        // The first pause has the second 1,500 ms behind it, and the second the end of the run 1,000 ms behind it.
        assert_eq!((aftermath.windows.len(), aftermath.windows[13].orders), (14, 10));
        assert!(aftermath.to_string().contains("yes, 300 ms"), "{aftermath}");
    }

    #[test]
    fn who_never_recovers_is_told_so() {
        let start = Instant::now();
        let pause = Pause {
            from: start + MS(1_000),
            until: start + MS(1_500),
        };
        let mut moments = run(&[pause], start);
        for moment in &mut moments {
            if moment.due >= pause.until {
                moment.latency = MS(50);
            }
        }
        let aftermath = PauseRecovery::measure(&[pause], &moments).unwrap();
        assert_eq!((aftermath.as_before_ms, aftermath.is_within_target()), (None, false));
        assert!(aftermath.to_string().contains("no, not at all"));
        assert_eq!(PauseRecovery::measure(&[], &moments), None);
    }
}
