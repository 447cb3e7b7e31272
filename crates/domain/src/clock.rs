//! Clock abstraction: wall-clock and monotonic time as a parameter, so that tests control both.
//!
//! Timestamps are truncated to microseconds before they enter a record: Postgres stores no more, and a GET
//! must return the bytes of the POST. Leases and retention use the database's clock or the monotonic clock,
//! never the wall clock.

use std::time::Duration;

use time::OffsetDateTime;

/// A source of wall-clock and monotonic time.
pub trait Clock: Send + Sync + 'static {
    /// The current UTC time, truncated to microseconds. It may jump: use it for display and for expiry by
    /// date only.
    fn now(&self) -> OffsetDateTime;

    /// Time since an arbitrary start; never decreases.
    fn monotonic(&self) -> Duration;
}

/// Truncates a timestamp to the microseconds that Postgres stores.
#[must_use]
pub fn truncate_to_micros(at: OffsetDateTime) -> OffsetDateTime {
    let nanos = at.nanosecond() / 1_000 * 1_000;
    at.replace_nanosecond(nanos).unwrap_or(at)
}

/// The operating system's clock.
#[derive(Debug)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    /// Creates a clock whose monotonic time starts now.
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
    #[allow(clippy::disallowed_methods)] // the only caller of the system clock
    fn now(&self) -> OffsetDateTime {
        truncate_to_micros(OffsetDateTime::now_utc())
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_keeps_microseconds() {
        let at = OffsetDateTime::from_unix_timestamp_nanos(1_700_000_000_123_456_789).unwrap();
        assert_eq!(truncate_to_micros(at).nanosecond(), 123_456_000);
    }
}
