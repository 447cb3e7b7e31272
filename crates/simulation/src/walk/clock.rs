//! Simulated clock: tokio's paused time, with a wall clock that can be skewed.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use time::OffsetDateTime;
use tokio::time::Instant;
use vouchsafe_domain::clock::{Clock, truncate_to_micros};

use crate::build::NOW;

/// A clock that follows tokio's.
#[derive(Debug)]
pub struct TestClock {
    started_at: Instant,
    skew_ms: AtomicI64,
}

impl TestClock {
    /// A clock that starts at [`NOW`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            started_at: Instant::now(),
            skew_ms: AtomicI64::new(0),
        }
    }

    /// Shifts the wall clock; monotonic time is unaffected.
    pub fn jump(&self, by: time::Duration) {
        let by_ms = i64::try_from(by.whole_milliseconds()).expect("the shift fits into milliseconds");
        self.skew_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TestClock {
    fn now(&self) -> OffsetDateTime {
        let skew = time::Duration::milliseconds(self.skew_ms.load(Ordering::Relaxed));
        truncate_to_micros(NOW + self.monotonic() + skew)
    }

    fn monotonic(&self) -> Duration {
        self.started_at.elapsed()
    }
}
