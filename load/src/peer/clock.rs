//! What time is it for the peer? Read here alone, cut to the microseconds that the database keeps.

use time::OffsetDateTime;

/// Nanoseconds in a microsecond.
const NANOS_IN_MICRO: u32 = 1_000;

/// Now, in UTC and whole microseconds: what is answered is what will be read back.
#[expect(
    clippy::disallowed_methods,
    reason = "a peer is a program of its own, with a clock of its own that is read here alone"
)]
pub(crate) fn now() -> OffsetDateTime {
    let now = OffsetDateTime::now_utc();
    let micros = now.nanosecond() / NANOS_IN_MICRO;
    now.replace_nanosecond(micros * NANOS_IN_MICRO).unwrap_or(now)
}
