//! Clock of the peer, truncated to microseconds, the precision of the database.

use time::OffsetDateTime;

const NANOS_IN_MICRO: u32 = 1_000;

/// Current UTC time in whole microseconds, so that a response equals a later read from the database.
#[expect(
    clippy::disallowed_methods,
    reason = "the peer is a separate program; this is the only place that reads its clock"
)]
pub(super) fn now() -> OffsetDateTime {
    let now = OffsetDateTime::now_utc();
    let micros = now.nanosecond() / NANOS_IN_MICRO;
    now.replace_nanosecond(micros * NANOS_IN_MICRO).unwrap_or(now)
}
