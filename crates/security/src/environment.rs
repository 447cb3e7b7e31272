//! Environment of a process: sandbox or production.
//!
//! A process serves one environment. API keys of the other environment are unknown keys.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The environment of a process, its database and its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    /// Mock vendor, mock stock, visibly fake codes.
    Sandbox,
    /// Real money and real codes.
    Production,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `sandbox` or `production`")]
pub struct UnknownEnvironment;

impl Environment {
    /// The name in settings and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Production => "production",
        }
    }

    /// The prefix of the environment's API keys.
    #[must_use]
    pub const fn key_prefix(self) -> &'static str {
        match self {
            Self::Sandbox => "vs_sandbox_",
            Self::Production => "vs_live_",
        }
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Environment {
    type Err = UnknownEnvironment;

    fn from_str(text: &str) -> Result<Self, UnknownEnvironment> {
        match text {
            "sandbox" => Ok(Self::Sandbox),
            "production" => Ok(Self::Production),
            _ => Err(UnknownEnvironment),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_round_trips_through_text() {
        for environment in [Environment::Sandbox, Environment::Production] {
            assert_eq!(environment.to_string().parse(), Ok(environment));
        }
        for text in ["", "Sandbox", "live", "production "] {
            assert_eq!(text.parse::<Environment>(), Err(UnknownEnvironment), "{text}");
        }
    }
}
