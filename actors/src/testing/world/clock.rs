//! The clock of a world: paused time, and a time of day that can be set wrong.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use time::OffsetDateTime;
use tokio::time::Instant;

use crate::domain::clock::{Clock, cut_to_micros};
use crate::testing::build::NOW;

/// A clock that runs with tokio's.
#[derive(Debug)]
pub struct TestClock {
    began: Instant,
    skew_ms: AtomicI64,
}

impl TestClock {
    /// A clock that shows the time at which everything in a test happens.
    #[must_use]
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            skew_ms: AtomicI64::new(0),
        }
    }

    /// The time of day jumps, and is wrong from now on; the monotonic time goes on.
    pub fn jump(&self, by: time::Duration) {
        let by_ms = i64::try_from(by.whole_milliseconds()).expect("a jump of a test is short");
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
        cut_to_micros(NOW + self.monotonic() + skew)
    }

    fn monotonic(&self) -> Duration {
        self.began.elapsed()
    }
}
