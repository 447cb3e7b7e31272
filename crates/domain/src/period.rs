//! Time range filter of lists: `from` (inclusive) and `to` (exclusive).
//!
//! A date means its midnight in UTC. A list whose range ends before it begins is refused.

pub mod time_option;

use serde::{Deserialize, Serialize};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime, UtcOffset};

use crate::iso_date::parse_date;

/// A time range, unbounded at an end that is `None`. Both ends are whole microseconds, like all stored times.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::IntoParams, clap::Args,
)]
#[into_params(parameter_in = Query)]
pub struct Period {
    /// Start of the time range, inclusive: a date (midnight UTC) or an RFC 3339 time.
    #[serde(default, with = "bound")]
    #[param(value_type = Option<crate::text_schema::DateOrTime>, inline, example = "2026-11-20")]
    #[arg(
        long = "since",
        visible_alias = "from",
        value_name = "TIME",
        value_parser = time_option::parse_time,
        help = "Start of the time range, inclusive: a time, a date (midnight UTC), or an age such as 30m, 1h or 2d"
    )]
    pub from: Option<OffsetDateTime>,
    /// End of the time range, exclusive: a date (midnight UTC) or an RFC 3339 time.
    #[serde(default, with = "bound")]
    #[param(value_type = Option<crate::text_schema::DateOrTime>, inline, example = "2026-11-21T12:00:00Z")]
    #[arg(
        long = "until",
        visible_alias = "to",
        value_name = "TIME",
        value_parser = time_option::parse_time,
        help = "End of the time range, exclusive"
    )]
    pub to: Option<OffsetDateTime>,
}

/// A text that is neither a date nor a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a date such as 2026-11-20 or a time such as 2026-11-20T12:00:00Z")]
pub struct InvalidTimestamp;

/// A range that can hold nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a time that is not before `from`: the range would be empty")]
pub struct ReversedPeriod;

impl Period {
    /// Checks that the range does not end before it begins.
    ///
    /// # Errors
    /// [`ReversedPeriod`].
    pub fn check(&self) -> Result<(), ReversedPeriod> {
        match (self.from, self.to) {
            (Some(from), Some(to)) if from > to => Err(ReversedPeriod),
            _ => Ok(()),
        }
    }
}

/// An end of the range in a query.
pub(crate) mod bound {
    use std::borrow::Cow;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer};
    use time::OffsetDateTime;

    use super::{InvalidTimestamp, parse_timestamp};
    pub(crate) use crate::timestamp::option::serialize;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<OffsetDateTime>, D::Error> {
        let Some(text) = Option::<Cow<'de, str>>::deserialize(deserializer)? else {
            return Ok(None);
        };
        let at = parse_timestamp(&text);
        let invalid = || D::Error::custom(format!("{InvalidTimestamp}; write + as %2B in a query"));
        at.map(Some).ok_or_else(invalid)
    }
}

/// Parses a date or an RFC 3339 time, as UTC.
#[must_use]
pub fn parse_timestamp(text: &str) -> Option<OffsetDateTime> {
    if let Some(date) = parse_date(text) {
        return Some(date.midnight().assume_utc());
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
