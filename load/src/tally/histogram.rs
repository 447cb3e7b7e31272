//! Latency histograms with the same bounds in all parts of a run.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Upper bound of recorded latencies in microseconds: twice the client's timeout.
const MAX_LATENCY_US: u64 = 60_000_000;
/// 0.1 % precision, far below the variation between runs.
const LATENCY_DIGITS: u8 = 3;

pub(crate) fn new_histogram() -> Histogram<u64> {
    new_histogram_with(LATENCY_DIGITS)
}

pub(crate) fn new_histogram_with(digits: u8) -> Histogram<u64> {
    let Ok(histogram) = Histogram::new_with_bounds(1, MAX_LATENCY_US, digits) else {
        unreachable!("the bounds are valid constants")
    };
    histogram
}

pub(crate) fn merge_histogram(own: &mut Histogram<u64>, added: &Histogram<u64>) {
    let Ok(()) = own.add(added) else {
        unreachable!("all histograms of a run have the same bounds")
    };
}

/// Reports have latencies in milliseconds.
pub(crate) fn millis(us: u64) -> f64 {
    us as f64 / 1_000.0
}

pub(crate) fn micros(latency: Duration) -> u64 {
    u64::try_from(latency.as_micros()).unwrap_or(u64::MAX)
}
