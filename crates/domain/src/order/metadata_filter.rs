//! Filter by an entry of an order's metadata: `key:value`. A key with a colon cannot be filtered by.

use std::borrow::Cow;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A key, and its value as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataFilter {
    pub key: String,
    pub value: String,
}

/// A text without a key or a colon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a key, a colon and its value, such as campaign:spring")]
pub struct InvalidMetadataFilter;

impl FromStr for MetadataFilter {
    type Err = InvalidMetadataFilter;

    fn from_str(text: &str) -> Result<Self, InvalidMetadataFilter> {
        let (key, value) = text.split_once(':').ok_or(InvalidMetadataFilter)?;
        if key.is_empty() {
            return Err(InvalidMetadataFilter);
        }
        Ok(Self {
            key: key.to_owned(),
            value: value.to_owned(),
        })
    }
}

impl Serialize for MetadataFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        format!("{}:{}", self.key, self.value).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for MetadataFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
