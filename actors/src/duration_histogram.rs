//! Histogram of durations in a fixed number of bytes, for figures that are read while the process runs.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Counts durations in `BUCKETS` buckets, `STEPS` to each power of two; the last bucket has no bound. `STEPS`
/// is a power of two. Counts wrap around after 2³² durations in a bucket.
#[derive(Debug)]
pub struct DurationHistogram<const STEPS: u64, const BUCKETS: usize>([AtomicU32; BUCKETS]);

/// The counts of a histogram.
#[derive(Debug, Clone, Copy)]
pub struct DurationCounts<const STEPS: u64, const BUCKETS: usize>([u32; BUCKETS]);

impl<const STEPS: u64, const BUCKETS: usize> Default for DurationHistogram<STEPS, BUCKETS> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU32::new(0)))
    }
}

impl<const STEPS: u64, const BUCKETS: usize> DurationHistogram<STEPS, BUCKETS> {
    /// Counts a duration.
    pub fn record(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = usize::try_from(bucket_of::<STEPS>(micros)).unwrap_or(BUCKETS);
        self.0[bucket.min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
    }

    /// The counts since the start.
    #[must_use]
    pub fn counts(&self) -> DurationCounts<STEPS, BUCKETS> {
        DurationCounts(std::array::from_fn(|bucket| {
            self.0[bucket].load(Ordering::Relaxed)
        }))
    }

    /// The counts since the last call.
    #[must_use]
    pub fn take_counts(&self) -> DurationCounts<STEPS, BUCKETS> {
        DurationCounts(std::array::from_fn(|bucket| {
            self.0[bucket].swap(0, Ordering::Relaxed)
        }))
    }
}

impl<const STEPS: u64, const BUCKETS: usize> Default for DurationCounts<STEPS, BUCKETS> {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl<const STEPS: u64, const BUCKETS: usize> DurationCounts<STEPS, BUCKETS> {
    /// Adds the counts of another period.
    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum = sum.wrapping_add(count);
        }
    }

    /// A bound below which `percent` of the durations are, at most a step above their true quantile; `None`
    /// without durations.
    #[must_use]
    pub fn quantile(&self, percent: u64) -> Option<Duration> {
        let total: u64 = self.0.iter().copied().map(u64::from).sum();
        let rank = (total * percent).div_ceil(100);
        let mut seen = 0;
        let bucket = self.0.iter().position(|count| {
            seen += u64::from(*count);
            *count > 0 && seen >= rank
        });
        bucket.map(|bucket| Duration::from_micros(bound_of::<STEPS>(bucket as u64)))
    }
}

/// Values below `STEPS` have a bucket each; those above share one with all that have the same leading binary
/// digits.
const fn bucket_of<const STEPS: u64>(micros: u64) -> u64 {
    if micros < STEPS {
        return micros;
    }
    let shift = (micros.ilog2() - STEPS.ilog2()) as u64;
    shift * STEPS + (micros >> shift)
}

/// The least value above the bucket.
const fn bound_of<const STEPS: u64>(bucket: u64) -> u64 {
    if bucket < STEPS {
        return bucket + 1;
    }
    let shift = bucket / STEPS - 1;
    (bucket - shift * STEPS + 1) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_in_the_first_bucket_with_a_greater_bound() {
        for micros in 0..5_000 {
            let bucket = bucket_of::<4>(micros);
            assert!(micros < bound_of::<4>(bucket), "{micros}");
            assert!(bucket == 0 || micros >= bound_of::<4>(bucket - 1), "{micros}");
        }
        assert_eq!(
            [0, 1, 2, 3, 4, 1_000_000].map(bucket_of::<1>),
            [0, 1, 2, 2, 3, 20]
        );
        assert_eq!([0, 1, 2, 3, 20].map(bound_of::<1>), [1, 2, 4, 8, 1 << 20]);
    }

    #[test]
    fn quantiles_are_bounds_of_recorded_durations() {
        let histogram = DurationHistogram::<1, 26>::default();
        assert_eq!(histogram.counts().quantile(50), None);
        for _ in 0..98 {
            histogram.record(Duration::from_nanos(900));
        }
        histogram.record(Duration::from_micros(100));
        histogram.record(Duration::from_hours(1));
        let mut counts = histogram.take_counts();
        assert_eq!(counts.quantile(50), Some(Duration::from_micros(1)));
        assert_eq!(counts.quantile(99), Some(Duration::from_micros(128)));
        assert_eq!(counts.quantile(100), Some(Duration::from_micros(1 << 25)));
        assert_eq!(histogram.counts().quantile(50), None, "the counts were taken");
        for _ in 0..101 {
            histogram.record(Duration::from_micros(100));
        }
        counts.add(&histogram.counts());
        assert_eq!(counts.quantile(50), Some(Duration::from_micros(128)));
    }
}
