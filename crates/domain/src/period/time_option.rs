//! Times that operators type: absolute, as tables print them, or an age such as `1h`.

use time::{Duration, OffsetDateTime};

use super::parse_timestamp;
use crate::clock::{Clock as _, SystemClock, truncate_to_micros};

/// An option's value that is no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a time such as 2026-11-20T12:00:00Z or 2026-11-20 12:00, a date such as 2026-11-20, or an age such as 30m, 1h or 2d"
)]
pub struct InvalidTime;

/// Parses a date (midnight UTC), an RFC 3339 time, a time without an offset (UTC) such as `2026-11-20 12:00`,
/// or an age: `1h` is an hour ago.
///
/// # Errors
/// [`InvalidTime`].
pub fn parse_time(text: &str) -> Result<OffsetDateTime, InvalidTime> {
    parse_time_at(text, SystemClock::new().now())
}

fn parse_time_at(text: &str, now: OffsetDateTime) -> Result<OffsetDateTime, InvalidTime> {
    let before_now = || {
        let age = Duration::try_from(humantime::parse_duration(text).ok()?).ok()?;
        let at = now.checked_sub(age).filter(|at| at.year() >= 0)?;
        Some(truncate_to_micros(at))
    };
    // The seconds and the offset that the text leaves out.
    let completed = || {
        let rest = match text.len() {
            16 => ":00Z",
            19 => "Z",
            _ => return None,
        };
        parse_timestamp(&format!("{text}{rest}"))
    };
    let at = parse_timestamp(text).or_else(completed).or_else(before_now);
    at.ok_or(InvalidTime)
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn time_option_is_absolute_or_an_age() {
        let now = datetime!(2026-11-20 12:00:00.000_001 UTC);
        for (text, expected) in [
            ("30m", datetime!(2026-11-20 11:30:00.000_001 UTC)),
            ("1h", datetime!(2026-11-20 11:00:00.000_001 UTC)),
            ("1h30m", datetime!(2026-11-20 10:30:00.000_001 UTC)),
            ("2d", datetime!(2026-11-18 12:00:00.000_001 UTC)),
            ("1ns", datetime!(2026-11-20 12:00 UTC)),
            ("2026-11-20", datetime!(2026-11-20 0:00 UTC)),
            ("2026-11-20 11:30:05", datetime!(2026-11-20 11:30:05 UTC)),
            ("2026-11-20T11:30", datetime!(2026-11-20 11:30 UTC)),
            ("2026-11-20T12:00:00+01:00", datetime!(2026-11-20 11:00 UTC)),
        ] {
            assert_eq!(parse_time_at(text, now), Ok(expected), "{text}");
        }
        for text in [
            "",
            "1",
            "-1h",
            "1x",
            "yesterday",
            "20261120",
            "3000y",
            "9999999999999d",
        ] {
            assert_eq!(parse_time_at(text, now), Err(InvalidTime), "{text}");
        }
    }
}
