//! What time it is: handed in, so that a day of retries can be tested in a moment.
//!
//! Rule: a timestamp is cut to microseconds before it enters a record, as Postgres keeps no more; so a GET answers the
//! very bytes that the POST did. What decides (leases, retention) is the database's clock, or the monotonic one here.

use std::time::Duration;

use time::OffsetDateTime;

/// A source of time.
pub trait Clock: Send + Sync + 'static {
    /// The time of day in UTC, cut to microseconds. May jump; decides nothing but what is printed and expires by date.
    fn now(&self) -> OffsetDateTime;

    /// Time since an arbitrary point. Never goes back.
    fn monotonic(&self) -> Duration;
}

/// Cuts what Postgres would not keep.
#[must_use]
pub fn cut_to_micros(at: OffsetDateTime) -> OffsetDateTime {
    let nanos = at.nanosecond() / 1_000 * 1_000;
    at.replace_nanosecond(nanos).unwrap_or(at)
}

/// The clock of the machine.
#[derive(Debug)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    /// A clock whose monotonic time begins now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            started: std::time::Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)] // the one place that reads the machine's clock
    fn now(&self) -> OffsetDateTime {
        cut_to_micros(OffsetDateTime::now_utc())
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cut_leaves_microseconds() {
        let at = OffsetDateTime::from_unix_timestamp_nanos(1_700_000_000_123_456_789).unwrap();
        assert_eq!(cut_to_micros(at).nanosecond(), 123_456_000);
    }
}
