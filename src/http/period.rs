//! `from` and `to`: from when to when is a list asked for?
//!
//! `from` is inclusive, `to` is exclusive; a date is its midnight in UTC. A span that ends before it begins has nothing
//! in it.

use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{Date, Duration, OffsetDateTime, UtcOffset};

use super::list::Page;
use crate::errors::ApiError;
use crate::store::Period;

/// What both are called in a query.
pub const NAMES: [&str; 2] = ["from", "to"];

/// How long a date is. Bytes.
const DATE_LENGTH: usize = "2026-11-20".len();

/// Reads `from` and `to`.
///
/// # Errors
/// `VALIDATION_FAILED` for what is neither a date nor a time.
pub fn of(page: &Page) -> Result<Period, ApiError> {
    let [from, to] = NAMES.map(|name| match page.filter(name) {
        None => Ok(None),
        Some(text) => moment(text).map(Some).ok_or_else(|| unreadable(name)),
    });
    Ok(Period { from: from?, to: to? })
}

/// A date or an RFC 3339 time, in UTC. What lies between two microseconds counts as the later one: all times here are
/// whole microseconds, and those before it are the same.
pub(super) fn moment(text: &str) -> Option<OffsetDateTime> {
    if let Ok(date) = Date::parse(text, format_description!("[year]-[month]-[day]")) {
        // The parser would take a sign before the year.
        return (text.len() == DATE_LENGTH).then(|| date.midnight().assume_utc());
    }
    let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    let at = at.checked_to_offset(UtcOffset::UTC).filter(|at| at.year() >= 0)?;
    let beyond = i64::from(at.nanosecond() % 1_000);
    if beyond == 0 {
        return Some(at);
    }
    at.checked_add(Duration::nanoseconds(1_000 - beyond))
}

pub(super) fn unreadable(name: &str) -> ApiError {
    let message =
        "expected a date such as 2026-11-20, or a time such as 2026-11-20T12:00:00Z; + is %2B in a query";
    ApiError::invalid(name, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::macros::datetime;

    use super::*;

    #[test]
    fn a_moment_is_a_date_or_a_time() {
        for (text, expected) in [
            ("2026-11-20", datetime!(2026-11-20 0:00 UTC)),
            ("2024-02-29", datetime!(2024-02-29 0:00 UTC)),
            ("0000-01-01", datetime!(0000-01-01 0:00 UTC)),
            ("2026-11-20T12:00:00Z", datetime!(2026-11-20 12:00 UTC)),
            ("2026-11-20 12:00:00Z", datetime!(2026-11-20 12:00 UTC)),
            ("2026-11-20T12:00:00+01:00", datetime!(2026-11-20 11:00 UTC)),
            (
                "2026-11-20T00:30:00.5+01:00",
                datetime!(2026-11-19 23:30:00.5 UTC),
            ),
            (
                "2026-11-20T12:00:00.123456Z",
                datetime!(2026-11-20 12:00:00.123_456 UTC),
            ),
            (
                "2026-11-20T12:00:00.123456001Z",
                datetime!(2026-11-20 12:00:00.123_457 UTC),
            ),
            ("2026-11-20T23:59:59.9999999Z", datetime!(2026-11-21 0:00 UTC)),
        ] {
            assert_eq!(moment(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "yesterday",
            "2026-11",
            "2026-11-31",
            "2025-02-29",
            "20261120",
            "+2026-11-20",
            "-2026-11-20",
            "2026-11-20T12:00:00",
            "2026-11-20T12:00:00 01:00",
            "2026-11-20T24:00:00Z",
            "1795176000",
            "9999-12-31T23:59:59.9999999Z",
        ] {
            assert_eq!(moment(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_time_is_read_as_it_was_meant(micros in 0..253_402_300_799_999_999_i128, hours in -12_i8..=12) {
            let meant = OffsetDateTime::from_unix_timestamp_nanos(micros * 1_000).unwrap();
            let Some(there) = meant.checked_to_offset(UtcOffset::from_hms(hours, 0, 0).unwrap()) else {
                return Ok(());
            };
            prop_assert_eq!(moment(&there.format(&Rfc3339).unwrap()), Some(meant));
            let day = meant.date();
            prop_assert_eq!(moment(&day.to_string()), Some(day.midnight().assume_utc()));
        }

        #[test]
        fn any_text_is_read_or_refused(
            text in r"[-+]?[0-9]{4}-[01][0-9]-[0-3][0-9](T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{1,9})?(Z|[-+][0-2][0-9]:[0-6][0-9])?)?",
        ) {
            if let Some(at) = moment(&text) {
                prop_assert_eq!(at.nanosecond() % 1_000, 0);
                prop_assert!((0..=9999).contains(&at.year()));
            }
        }
    }
}
