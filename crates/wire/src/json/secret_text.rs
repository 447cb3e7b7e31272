//! Text that may contain a voucher code: never quoted in an error, never in `Debug` output.

use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that may contain a voucher code. Errors about it never quote the input.
pub struct SecretText(zeroize::Zeroizing<String>);

impl SecretText {
    /// Exposes the text.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(***)")
    }
}

/// Only for requests of the command line: no response contains a secret text.
impl Serialize for SecretText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.expose())
    }
}

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SecretVisitor)
    }
}

struct SecretVisitor;

impl Visitor<'_> for SecretVisitor {
    type Value = SecretText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SecretText, E> {
        Ok(SecretText(text.to_owned().into()))
    }

    // The default methods would quote the number in the error.
    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<SecretText, E> {
        Err(E::custom("expected a string"))
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<SecretText, E> {
        Err(E::custom("expected a string"))
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<SecretText, E> {
        Err(E::custom("expected a string"))
    }
}
