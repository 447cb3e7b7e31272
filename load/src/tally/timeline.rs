//! Per-second timeline of a run. Shows stalls, slow starts and degradation that averages hide.

use std::time::{Duration, Instant};

use serde::Serialize;

/// One day; later orders count in the last second.
const MAX_SECONDS: usize = 86_400;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TimelineSecond {
    /// Acknowledged orders.
    pub orders: u64,
    /// New orders with another outcome.
    pub others: u64,
    /// Slowest acknowledged order, in microseconds.
    pub slowest_us: u64,
}

/// Seconds of a run, from the end of the warm-up.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    from: Option<Instant>,
    seconds: Vec<TimelineSecond>,
}

impl Timeline {
    #[must_use]
    pub fn starting_at(from: Instant) -> Self {
        Self {
            from: Some(from),
            seconds: Vec::new(),
        }
    }

    /// Records an order that completed at `end`; `latency` is set for acknowledged orders.
    pub(crate) fn record(&mut self, end: Instant, latency: Option<Duration>) {
        let Some(from) = self.from else { return };
        let elapsed_s = end.saturating_duration_since(from).as_secs();
        let index = usize::try_from(elapsed_s)
            .unwrap_or(MAX_SECONDS)
            .min(MAX_SECONDS - 1);
        if self.seconds.len() <= index {
            self.seconds.resize(index + 1, TimelineSecond::default());
        }
        let second = &mut self.seconds[index];
        match latency {
            Some(latency) => {
                second.orders += 1;
                let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
                second.slowest_us = second.slowest_us.max(micros);
            }
            None => second.others += 1,
        }
    }

    /// Adds the timeline of another thread.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.from = self.from.or(other.from);
        if self.seconds.len() < other.seconds.len() {
            self.seconds
                .resize(other.seconds.len(), TimelineSecond::default());
        }
        for (own, added) in self.seconds.iter_mut().zip(&other.seconds) {
            own.orders += added.orders;
            own.others += added.others;
            own.slowest_us = own.slowest_us.max(added.slowest_us);
        }
    }

    #[must_use]
    pub fn seconds(&self) -> &[TimelineSecond] {
        &self.seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_counts_in_second_of_completion() {
        let from = Instant::now();
        let at = |ms| from + Duration::from_millis(ms);
        let ms = Duration::from_millis;
        let (mut one, mut two) = (Timeline::starting_at(from), Timeline::starting_at(from));
        one.record(at(10), Some(ms(4)));
        one.record(at(2_500), Some(ms(1)));
        two.record(at(999), Some(ms(7)));
        two.record(at(3_000), None);
        one.merge(&two);
        let counts: Vec<_> = one
            .seconds()
            .iter()
            .map(|second| (second.orders, second.others, second.slowest_us))
            .collect();
        assert_eq!(counts, [(2, 0, 7_000), (0, 0, 0), (1, 0, 1_000), (0, 1, 0)]);
    }
}
