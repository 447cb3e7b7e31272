//! Latency histograms with the same precision in all parts of a run. They grow with their values, so no
//! latency is clipped.

use std::time::Duration;

use hdrhistogram::Histogram;

/// First upper bound in microseconds: twice the client's timeout. Latencies of an open loop above capacity
/// exceed it.
const INITIAL_MAX_US: u64 = 60_000_000;
/// 0.1 % precision, far below the variation between runs.
const LATENCY_DIGITS: u8 = 3;

pub(crate) fn new_histogram() -> Histogram<u64> {
    new_histogram_with(LATENCY_DIGITS)
}

pub(crate) fn new_histogram_with(digits: u8) -> Histogram<u64> {
    let Ok(mut histogram) = Histogram::new_with_bounds(1, INITIAL_MAX_US, digits) else {
        unreachable!("the bounds are valid constants")
    };
    histogram.auto(true);
    histogram
}

pub(crate) fn record_latency(histogram: &mut Histogram<u64>, latency: Duration) {
    let Ok(()) = histogram.record(micros(latency)) else {
        unreachable!("a histogram that grows has room for every value")
    };
}

pub(crate) fn merge_histogram(own: &mut Histogram<u64>, added: &Histogram<u64>) {
    let Ok(()) = own.add(added) else {
        unreachable!("a histogram that grows has room for every value")
    };
}

/// Reports have latencies in milliseconds.
pub(crate) fn millis(us: u64) -> f64 {
    us as f64 / 1_000.0
}

fn micros(latency: Duration) -> u64 {
    u64::try_from(latency.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_above_the_first_bound_is_not_clipped() {
        let (mut one, mut sum) = (new_histogram(), new_histogram());
        record_latency(&mut one, Duration::from_secs(200));
        record_latency(&mut sum, Duration::from_millis(1));
        merge_histogram(&mut sum, &one);
        assert!(
            (199_000.0..201_000.0).contains(&millis(sum.max())),
            "{}",
            sum.max()
        );
        assert_eq!(sum.len(), 2);
    }
}
