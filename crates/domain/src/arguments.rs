//! Command-line options and their value parsers, derived from the types of their values.

use std::error::Error;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use strum::VariantArray;
use time::{Duration, OffsetDateTime};

use crate::clock::{Clock as _, SystemClock, truncate_to_micros};
use crate::period::parse_timestamp;

/// Parses a variant from its text in the API, and lists the texts in the help.
pub fn enum_parser<T>() -> impl TypedValueParser<Value = T>
where
    T: VariantArray + FromStr<Err: Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
    &'static str: From<&'static T>,
{
    enum_parser_of(T::VARIANTS)
}

/// Like [`enum_parser`], for some of the variants.
pub fn enum_parser_of<T>(variants: &'static [T]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
    &'static str: From<&'static T>,
{
    PossibleValuesParser::new(variants.iter().map(<&'static str>::from)).try_map(|text| text.parse())
}

/// An option's value that is no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a time such as 2026-11-20T12:00:00Z, a date such as 2026-11-20, or an age such as 30m, 1h or 2d"
)]
pub struct InvalidTime;

/// Parses a date (midnight UTC), an RFC 3339 time, or an age: `1h` is an hour ago.
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
    parse_timestamp(text).or_else(before_now).ok_or(InvalidTime)
}

/// Parses a type from the command line as another one, which derives its options and converts into it.
#[macro_export]
macro_rules! parse_as_options {
    ($type:ty, $options:ty) => {
        impl clap::FromArgMatches for $type {
            fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
                <$options as clap::FromArgMatches>::from_arg_matches(matches).map(Self::from)
            }

            fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }

        impl clap::Args for $type {
            fn group_id() -> Option<clap::Id> {
                <$options as clap::Args>::group_id()
            }

            fn augment_args(command: clap::Command) -> clap::Command {
                <$options as clap::Args>::augment_args(command)
            }

            fn augment_args_for_update(command: clap::Command) -> clap::Command {
                <$options as clap::Args>::augment_args_for_update(command)
            }
        }
    };
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
