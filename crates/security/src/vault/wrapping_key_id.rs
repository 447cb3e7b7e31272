//! Id of a wrapping key.

use std::fmt;

/// Identifies a wrapping key, and is no secret: the check value of a master key, or the name of a key
/// manager's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappingKeyId(String);

impl WrappingKeyId {
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    #[must_use]
    pub const fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for WrappingKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
