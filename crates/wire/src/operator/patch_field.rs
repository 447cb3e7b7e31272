//! Fields of a patch: distinguishes absent from `null`.

use serde::{Deserialize, Deserializer, Serialize};
use time::{OffsetDateTime, UtcOffset};
use vouchsafe_domain::clock::truncate_to_micros;
use vouchsafe_domain::whole_number;

use crate::json::JsonObject;

/// A value that may be `null`.
pub(super) type Nullable<T> = Option<T>;

/// Any RFC 3339 time.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Timestamp(#[serde(with = "vouchsafe_domain::timestamp")] pub(super) OffsetDateTime);

impl Timestamp {
    /// Converts to what is stored: UTC in whole microseconds.
    pub(super) fn to_utc(self) -> OffsetDateTime {
        truncate_to_micros(self.0.to_offset(UtcOffset::UTC))
    }
}

/// Distinguishes an absent field (`None`) from `null`, which `T` accepts or rejects.
pub(super) fn some<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Reads a whole number as [`some`] reads other values.
pub(super) fn nullable_number<'de, T, D>(deserializer: D) -> Result<Option<Nullable<T>>, D::Error>
where
    T: TryFrom<u64>,
    D: Deserializer<'de>,
{
    whole_number::optional(deserializer).map(Some)
}

/// Reads an object only: a derived `Deserialize` also accepts an array of the field values.
pub(super) fn some_object<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    JsonObject::deserialize(deserializer).map(|JsonObject(value)| Some(value))
}

/// Reads an object as [`some_object`] does, or `null`.
pub(super) fn nullable_object<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let value = Option::<JsonObject<T>>::deserialize(deserializer)?;
    Ok(Some(value.map(|JsonObject(value)| value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_differs_from_absent_field() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Patch {
            #[serde(default, deserialize_with = "some")]
            clears: Option<Option<u32>>,
            #[serde(default, deserialize_with = "some")]
            stays: Option<bool>,
        }
        let patch = |text| serde_json::from_str::<Patch>(text);
        assert_eq!(
            patch("{}").unwrap(),
            Patch {
                clears: None,
                stays: None
            }
        );
        assert_eq!(patch(r#"{"clears":null}"#).unwrap().clears, Some(None));
        assert_eq!(patch(r#"{"clears":7}"#).unwrap().clears, Some(Some(7)));
        assert!(patch(r#"{"stays":null}"#).is_err());
    }
}
