//! Maximum number of entries of a response, with its range.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Number of entries: 1 to `MAX`, by default `DEFAULT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limit<const MAX: usize, const DEFAULT: usize>(usize);

/// Entries of a page (contract §3).
pub type PageLimit = Limit<100, 25>;

impl<const MAX: usize, const DEFAULT: usize> Limit<MAX, DEFAULT> {
    pub const DEFAULT: usize = DEFAULT;

    /// The highest limit, the default of commands.
    pub const HIGHEST: Self = Self(MAX);

    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }

    /// Help of the command-line option that limits the number of these entries.
    #[must_use]
    pub fn help(entries: &str) -> String {
        format!("Maximum number of {entries}, 1 to {MAX}")
    }
}

impl<const MAX: usize, const DEFAULT: usize> Default for Limit<MAX, DEFAULT> {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl<const MAX: usize, const DEFAULT: usize> fmt::Display for Limit<MAX, DEFAULT> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A limit out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected 1 to {max}")]
pub struct InvalidLimit {
    max: usize,
}

impl<const MAX: usize, const DEFAULT: usize> FromStr for Limit<MAX, DEFAULT> {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        let limit = text.parse().ok().filter(|limit| (1..=MAX).contains(limit));
        limit.map(Self).ok_or(InvalidLimit { max: MAX })
    }
}

impl<'de, const MAX: usize, const DEFAULT: usize> Deserialize<'de> for Limit<MAX, DEFAULT> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl<const MAX: usize, const DEFAULT: usize> PartialSchema for Limit<MAX, DEFAULT> {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(MAX))
            .default(Some(DEFAULT.into()))
            .into()
    }
}

impl<const MAX: usize, const DEFAULT: usize> ToSchema for Limit<MAX, DEFAULT> {}
