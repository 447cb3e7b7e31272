//! How did a run go on, second by second? What an average hides: a stall, a slow beginning, a service that tires.

use std::time::{Duration, Instant};

use serde::Serialize;

/// Most seconds that are told apart; what comes later is counted in the last. A day.
const MAX_SECONDS: usize = 86_400;

/// One second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TimelineSecond {
    /// Orders acknowledged in it.
    pub orders: u64,
    /// New orders that were answered otherwise in it, or not at all.
    pub others: u64,
    /// The slowest of the orders acknowledged in it, in microseconds.
    pub slowest_us: u64,
}

/// The seconds of a run, from the end of its warm-up.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    from: Option<Instant>,
    seconds: Vec<TimelineSecond>,
}

impl Timeline {
    /// Begins at this time.
    #[must_use]
    pub fn starting_at(from: Instant) -> Self {
        Self {
            from: Some(from),
            seconds: Vec::new(),
        }
    }

    /// Enters an order that ended at `end`; `latency` is that of one which was acknowledged.
    pub(crate) fn enter(&mut self, end: Instant, latency: Option<Duration>) {
        let Some(from) = self.from else { return };
        let since = end.saturating_duration_since(from).as_secs();
        let index = usize::try_from(since).unwrap_or(MAX_SECONDS).min(MAX_SECONDS - 1);
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

    /// Adds what another thread saw of the same run.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.from = self.from.or(other.from);
        if self.seconds.len() < other.seconds.len() {
            self.seconds.resize(other.seconds.len(), TimelineSecond::default());
        }
        for (mine, theirs) in self.seconds.iter_mut().zip(&other.seconds) {
            mine.orders += theirs.orders;
            mine.others += theirs.others;
            mine.slowest_us = mine.slowest_us.max(theirs.slowest_us);
        }
    }

    /// The seconds, in their order.
    #[must_use]
    pub fn seconds(&self) -> &[TimelineSecond] {
        &self.seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_counts_in_the_second_it_ended_in() {
        let from = Instant::now();
        let at = |ms| from + Duration::from_millis(ms);
        let ms = Duration::from_millis;
        let (mut one, mut two) = (Timeline::starting_at(from), Timeline::starting_at(from));
        one.enter(at(10), Some(ms(4)));
        one.enter(at(2_500), Some(ms(1)));
        two.enter(at(999), Some(ms(7)));
        two.enter(at(3_000), None);
        one.merge(&two);
        let seen: Vec<_> = one
            .seconds()
            .iter()
            .map(|second| (second.orders, second.others, second.slowest_us))
            .collect();
        assert_eq!(seen, [(2, 0, 7_000), (0, 0, 0), (1, 0, 1_000), (0, 1, 0)]);
    }
}
