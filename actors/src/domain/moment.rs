//! A moment on the wire: RFC 3339 in UTC, to the microsecond and always with six digits, so that moments sort as text.

use serde::{Deserializer, Serializer};
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

const FORM: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");

/// The text of a moment.
///
/// # Errors
/// [`time::error::Format`] never, as every moment has these parts.
pub fn text(at: OffsetDateTime) -> Result<String, time::error::Format> {
    at.to_offset(UtcOffset::UTC).format(FORM)
}

/// Writes a moment.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(at: &OffsetDateTime, serializer: S) -> Result<S::Ok, S::Error> {
    // On the stack: an order has five of them.
    let mut buffer = [0; 64];
    let mut rest = &mut buffer[..];
    let length = at
        .to_offset(UtcOffset::UTC)
        .format_into(&mut rest, FORM)
        .map_err(serde::ser::Error::custom)?;
    let text = str::from_utf8(&buffer[..length]).map_err(serde::ser::Error::custom)?;
    serializer.serialize_str(text)
}

/// Reads a moment: any RFC 3339.
///
/// # Errors
/// Those of the deserializer.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OffsetDateTime, D::Error> {
    time::serde::rfc3339::deserialize(deserializer)
}

/// The same where there may be none.
pub mod option {
    use serde::{Deserializer, Serializer};
    use time::OffsetDateTime;

    /// Writes a moment, or null.
    ///
    /// # Errors
    /// Those of the serializer.
    #[allow(clippy::ref_option)] // serde asks for it
    pub fn serialize<S: Serializer>(at: &Option<OffsetDateTime>, serializer: S) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => super::serialize(at, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Reads a moment, or null.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<OffsetDateTime>, D::Error> {
        time::serde::rfc3339::option::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn a_moment_has_six_digits_and_is_of_utc() {
        for (at, expected) in [
            (datetime!(2026-01-02 03:04:05 UTC), "2026-01-02T03:04:05.000000Z"),
            (
                datetime!(2026-01-02 03:04:05.1 UTC),
                "2026-01-02T03:04:05.100000Z",
            ),
            (
                datetime!(2026-01-02 03:04:05.123456 +1),
                "2026-01-02T02:04:05.123456Z",
            ),
        ] {
            assert_eq!(text(at).unwrap(), expected);
        }
    }
}
