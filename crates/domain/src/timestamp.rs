//! Timestamps on the wire: RFC 3339 in UTC with exactly six fractional digits, so that they sort as text.

use serde::{Deserializer, Serializer};
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

const FORM: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");

/// Formats a timestamp.
///
/// # Errors
/// Never fails in practice: [`OffsetDateTime`] has every component of the format.
pub fn format(at: OffsetDateTime) -> Result<String, time::error::Format> {
    at.to_offset(UtcOffset::UTC).format(FORM)
}

/// Serializes a timestamp.
///
/// # Errors
/// The serializer's error.
pub fn serialize<S: Serializer>(at: &OffsetDateTime, serializer: S) -> Result<S::Ok, S::Error> {
    // A stack buffer saves an allocation per timestamp; an order has five.
    let mut buffer = [0; 64];
    let mut rest = &mut buffer[..];
    let length = at
        .to_offset(UtcOffset::UTC)
        .format_into(&mut rest, FORM)
        .map_err(serde::ser::Error::custom)?;
    let text = str::from_utf8(&buffer[..length]).map_err(serde::ser::Error::custom)?;
    serializer.serialize_str(text)
}

/// Deserializes any RFC 3339 timestamp.
///
/// # Errors
/// The deserializer's error.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OffsetDateTime, D::Error> {
    time::serde::rfc3339::deserialize(deserializer)
}

/// Optional timestamps, null on the wire.
pub mod option {
    use serde::{Deserializer, Serializer};
    use time::OffsetDateTime;

    /// Serializes a timestamp or null.
    ///
    /// # Errors
    /// The serializer's error.
    #[allow(clippy::ref_option)] // the signature that serde requires
    pub fn serialize<S: Serializer>(at: &Option<OffsetDateTime>, serializer: S) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => super::serialize(at, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Deserializes a timestamp or null.
    ///
    /// # Errors
    /// The deserializer's error.
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
    fn timestamp_has_six_digits_in_utc() {
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
            assert_eq!(format(at).unwrap(), expected);
        }
    }
}
