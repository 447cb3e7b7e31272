//! Which of the two worlds is this: the sandbox, or production?
//!
//! The rule: one process serves one environment, and a key of the other one is an unknown key.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The world that a process, its database and its keys belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    /// Mock vendor, mock stock, codes that are visibly fake.
    Sandbox,
    /// Real money and real codes.
    Production,
}

/// A text that names no environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `sandbox` or `production`")]
pub struct UnknownEnvironment;

impl Environment {
    /// The word for it in settings and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Production => "production",
        }
    }

    /// What an API key of this environment begins with.
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
    fn an_environment_reads_back_as_it_was_written() {
        for environment in [Environment::Sandbox, Environment::Production] {
            assert_eq!(environment.to_string().parse(), Ok(environment));
        }
        for text in ["", "Sandbox", "live", "production "] {
            assert_eq!(text.parse::<Environment>(), Err(UnknownEnvironment), "{text}");
        }
    }
}
