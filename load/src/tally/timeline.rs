//! Timeline of a run: acknowledged orders and their latency in windows of equal length, from the end of the
//! warm-up.
//!
//! Rule: an order belongs to the window in which it completed, so a stall shows as a gap and the slow orders
//! after it.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::histogram::{merge_histogram, millis, new_histogram_with, record_latency};

/// Bounds memory (20 KB per window) and the points of a plot: a longer run has longer windows.
const MAX_WINDOWS: usize = 600;

/// Precision of 1 %, which a plot does not show.
const WINDOW_DIGITS: u8 = 2;

#[derive(Clone, Debug)]
struct Window {
    latency_us: Histogram<u64>,
    others: u64,
}

impl Window {
    fn new() -> Self {
        Self {
            latency_us: new_histogram_with(WINDOW_DIGITS),
            others: 0,
        }
    }

    fn merge(&mut self, other: &Self) {
        merge_histogram(&mut self.latency_us, &other.latency_us);
        self.others += other.others;
    }
}

#[derive(Clone, Debug)]
pub struct Timeline {
    from: Instant,
    window_s: u64,
    windows: Vec<Window>,
}

/// Throughput and latency over time, in windows of equal length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    pub window_s: u64,
    pub windows: Vec<SeriesWindow>,
    /// Responses after the end of the load, to requests that were still open.
    pub drain: Vec<SeriesWindow>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SeriesWindow {
    /// Acknowledged orders per second.
    pub orders_per_s: f64,
    /// New orders with another outcome, per second.
    pub others_per_s: f64,
    /// Latency of acknowledged orders; `None` if there were none.
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
}

impl Timeline {
    /// `from` is the end of the warm-up.
    pub(super) fn starting_at(from: Instant) -> Self {
        Self {
            from,
            window_s: 1,
            windows: Vec::new(),
        }
    }

    /// Records an order that completed at `end`; `latency` is set for acknowledged orders.
    pub(super) fn record(&mut self, end: Instant, latency: Option<Duration>) {
        let elapsed_s = end.saturating_duration_since(self.from).as_secs();
        let index = loop {
            match usize::try_from(elapsed_s / self.window_s) {
                Ok(index) if index < MAX_WINDOWS => break index,
                _ => self.double_windows(),
            }
        };
        self.extend_to(index + 1);
        let window = &mut self.windows[index];
        match latency {
            Some(latency) => record_latency(&mut window.latency_us, latency),
            None => window.others += 1,
        }
    }

    /// Adds the timeline of another thread.
    pub(super) fn merge(&mut self, mut other: Self) {
        while self.window_s < other.window_s {
            self.double_windows();
        }
        while other.window_s < self.window_s {
            other.double_windows();
        }
        self.extend_to(other.windows.len());
        for (own, added) in self.windows.iter_mut().zip(&other.windows) {
            own.merge(added);
        }
    }

    /// The windows within the load, and those of the drain until the last response. A window that is covered
    /// in part would show a drop that did not happen.
    #[must_use]
    pub fn series(&self, load: Duration, until_last_response: Duration) -> Series {
        let count =
            |length: Duration| usize::try_from(length.as_secs() / self.window_s).unwrap_or(MAX_WINDOWS);
        let (in_load, in_all) = (count(load), count(until_last_response.max(load)));
        let empty = Window::new();
        let all = self.windows.iter().chain(std::iter::repeat(&empty)).take(in_all);
        let mut windows: Vec<_> = all.map(|window| self.measure(window)).collect();
        Series {
            window_s: self.window_s,
            drain: windows.split_off(in_load),
            windows,
        }
    }

    fn measure(&self, window: &Window) -> SeriesWindow {
        let per_s = |count: u64| count as f64 / self.window_s as f64;
        let latency = &window.latency_us;
        let at = |quantile| (!latency.is_empty()).then(|| millis(latency.value_at_quantile(quantile)));
        SeriesWindow {
            orders_per_s: per_s(latency.len()),
            others_per_s: per_s(window.others),
            p50_ms: at(0.5),
            p99_ms: at(0.99),
        }
    }

    fn double_windows(&mut self) {
        self.window_s *= 2;
        let pairs = self.windows.chunks(2).map(|pair| {
            let mut sum = pair[0].clone();
            pair.iter().skip(1).for_each(|second| sum.merge(second));
            sum
        });
        self.windows = pairs.collect();
    }

    fn extend_to(&mut self, count: usize) {
        if self.windows.len() < count {
            self.windows.resize_with(count, Window::new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Orders per second by window.
    fn rates(series: &Series) -> Vec<f64> {
        series.windows.iter().map(|window| window.orders_per_s).collect()
    }

    #[test]
    fn order_counts_in_window_of_completion() {
        let from = Instant::now();
        let (mut one, mut two) = (Timeline::starting_at(from), Timeline::starting_at(from));
        one.record(from + MS(10), Some(MS(4)));
        two.record(from + MS(999), Some(MS(8)));
        two.record(from + MS(2_000), None);
        one.merge(two);
        let series = one.series(MS(3_000), MS(3_000));
        assert_eq!(rates(&series), [2.0, 0.0, 0.0]);
        assert_eq!(series.windows[2].others_per_s, 1.0);
        assert_eq!(series.windows[1].p99_ms, None);
        let [p50, p99] = [series.windows[0].p50_ms, series.windows[0].p99_ms].map(Option::unwrap);
        assert!(
            (3.9..4.1).contains(&p50) && (7.9..8.1).contains(&p99),
            "{series:?}"
        );
    }

    #[test]
    fn partial_last_window_is_omitted() {
        let from = Instant::now();
        let mut timeline = Timeline::starting_at(from);
        for ms in [500, 1_500, 2_010] {
            timeline.record(from + MS(ms), Some(MS(1)));
        }
        // Requests were sent for two seconds; the last response came 10 ms later.
        let series = |load, last| timeline.series(MS(load), MS(last));
        assert_eq!(rates(&series(2_000, 2_010)), [1.0, 1.0]);
        assert!(series(2_000, 2_010).drain.is_empty());
        assert_eq!(rates(&series(2_900, 2_010)), [1.0, 1.0]);
        assert!(series(999, 0).windows.is_empty());
    }

    #[test]
    fn drain_has_windows_until_the_last_response() {
        let from = Instant::now();
        let mut timeline = Timeline::starting_at(from);
        for ms in [500, 1_500, 1_600, 3_900] {
            timeline.record(from + MS(ms), Some(MS(1)));
        }
        let series = timeline.series(MS(1_000), MS(3_900));
        assert_eq!(rates(&series), [1.0]);
        let drain: Vec<_> = series.drain.iter().map(|window| window.orders_per_s).collect();
        assert_eq!(drain, [2.0, 0.0]);
    }

    #[test]
    fn long_run_has_longer_windows() {
        let from = Instant::now();
        let (mut long, mut short) = (Timeline::starting_at(from), Timeline::starting_at(from));
        short.record(from, Some(MS(1)));
        for second in 0..1_300 {
            long.record(from + Duration::from_secs(second), Some(MS(1)));
        }
        short.merge(long);
        let length = Duration::from_secs(1_300);
        let series = short.series(length, length);
        assert_eq!((series.window_s, series.windows.len()), (4, 325));
        assert_eq!(rates(&series)[..2], [1.25, 1.0]);
    }
}
