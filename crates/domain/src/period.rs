//! Time range of a list filter.

use time::OffsetDateTime;

/// A time range, unbounded at an end that is `None`. Both ends are whole microseconds, like all stored times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Period {
    /// Inclusive.
    pub from: Option<OffsetDateTime>,
    /// Exclusive.
    pub to: Option<OffsetDateTime>,
}
