//! Time range filter of lists: the `from` (inclusive) and `to` (exclusive) parameters.
//!
//! A date means its midnight in UTC. A range that ends before it begins is empty.

use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{Date, Duration, OffsetDateTime, UtcOffset};
use vouchsafe_domain::period::Period;

use crate::error_body::InvalidRequest;
use crate::page::PageRequest;

pub const PARAMETERS: [&str; 2] = ["from", "to"];

const DATE_LENGTH: usize = "2026-11-20".len();

/// Parses `from` and `to`.
///
/// # Errors
/// `VALIDATION_FAILED` for a value that is neither a date nor a time.
pub fn from_page(page: &PageRequest) -> Result<Period, InvalidRequest> {
    let [from, to] = PARAMETERS.map(|name| match page.filter(name) {
        None => Ok(None),
        Some(text) => parse_timestamp(text)
            .map(Some)
            .ok_or_else(|| invalid_timestamp(name)),
    });
    Ok(Period { from: from?, to: to? })
}

/// Parses a date or an RFC 3339 time, as UTC.
pub fn parse_timestamp(text: &str) -> Option<OffsetDateTime> {
    if let Ok(date) = Date::parse(text, format_description!("[year]-[month]-[day]")) {
        // The parser also accepts a sign before the year.
        return (text.len() == DATE_LENGTH).then(|| date.midnight().assume_utc());
    }
    let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    let at = at.checked_to_offset(UtcOffset::UTC).filter(|at| at.year() >= 0)?;
    // Stored times are whole microseconds, so rounding up selects the same rows.
    let fraction = i64::from(at.nanosecond() % 1_000);
    if fraction == 0 {
        return Some(at);
    }
    at.checked_add(Duration::nanoseconds(1_000 - fraction))
}

pub fn invalid_timestamp(name: &str) -> InvalidRequest {
    let message = "expected a date such as 2026-11-20 or a time such as 2026-11-20T12:00:00Z; write + as %2B in a query";
    InvalidRequest::field(name, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::macros::datetime;

    use super::*;

    #[test]
    fn date_or_time_is_parsed_as_utc() {
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
            assert_eq!(parse_timestamp(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn malformed_timestamp_is_rejected() {
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
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn formatted_time_round_trips(micros in 0..253_402_300_799_999_999_i128, hours in -12_i8..=12) {
            let expected = OffsetDateTime::from_unix_timestamp_nanos(micros * 1_000).unwrap();
            let Some(local) = expected.checked_to_offset(UtcOffset::from_hms(hours, 0, 0).unwrap()) else {
                return Ok(());
            };
            prop_assert_eq!(parse_timestamp(&local.format(&Rfc3339).unwrap()), Some(expected));
            let day = expected.date();
            prop_assert_eq!(parse_timestamp(&day.to_string()), Some(day.midnight().assume_utc()));
        }

        #[test]
        fn any_text_is_parsed_or_rejected(
            text in r"[-+]?[0-9]{4}-[01][0-9]-[0-3][0-9](T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{1,9})?(Z|[-+][0-2][0-9]:[0-6][0-9])?)?",
        ) {
            if let Some(at) = parse_timestamp(&text) {
                prop_assert_eq!(at.nanosecond() % 1_000, 0);
                prop_assert!((0..=9999).contains(&at.year()));
            }
        }
    }
}
