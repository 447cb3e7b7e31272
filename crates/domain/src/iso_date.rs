//! Parser of ISO 8601 calendar dates (`YYYY-MM-DD`).

use serde::Serializer;
use time::Date;

/// A text that is not a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a date in the form YYYY-MM-DD")]
pub struct InvalidDate;

/// Parses `YYYY-MM-DD` strictly. The length check rejects a sign before the year.
#[must_use]
pub fn parse_date(text: &str) -> Option<Date> {
    let format = time::macros::format_description!("[year]-[month]-[day]");
    (text.len() == 10)
        .then(|| Date::parse(text, &format).ok())
        .flatten()
}

/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(date: &Date, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(date)
}

/// Parses the date of an option.
pub(crate) fn parse_argument(text: &str) -> Result<Date, InvalidDate> {
    parse_date(text).ok_or(InvalidDate)
}

/// Optional dates as text.
pub mod option {
    use std::borrow::Cow;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};
    use time::Date;

    use super::{InvalidDate, parse_date};

    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(date: &Option<Date>, serializer: S) -> Result<S::Ok, S::Error> {
        match date {
            Some(date) => serializer.collect_str(date),
            None => serializer.serialize_none(),
        }
    }

    /// # Errors
    /// If the text is not a date.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Date>, D::Error> {
        let text = Option::<Cow<'de, str>>::deserialize(deserializer)?;
        let parse = |text: Cow<'_, str>| parse_date(&text).ok_or_else(|| D::Error::custom(InvalidDate));
        text.map(parse).transpose()
    }
}
