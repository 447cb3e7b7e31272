//! Serde for a text that is JSON itself: it is written and read byte for byte, without escapes.

use std::sync::Arc;

use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
use serde_json::value::RawValue;

#[allow(clippy::ref_option)] // the signature that serde requires
pub(crate) fn serialize<S: Serializer>(text: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    let raw: Option<&RawValue> = text
        .as_deref()
        .map(serde_json::from_str)
        .transpose()
        .map_err(serde::ser::Error::custom)?;
    raw.serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<str>>, D::Error> {
    let raw = Option::<Box<RawValue>>::deserialize(deserializer)?;
    Ok(raw.map(|raw| Arc::from(raw.get())))
}
