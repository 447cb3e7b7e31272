//! Environment of a process: sandbox or production.
//!
//! A process serves one environment. API keys of the other environment are unknown keys.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

/// The environment of a process, its database and its keys.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str, parse_err_ty = UnknownEnvironment, parse_err_fn = UnknownEnvironment::new)]
pub enum Environment {
    /// Mock vendor, mock stock, visibly fake codes.
    Sandbox,
    /// Real money and real codes.
    Production,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `sandbox` or `production`")]
pub struct UnknownEnvironment;

impl UnknownEnvironment {
    const fn new(_: &str) -> Self {
        Self
    }
}

impl Environment {
    /// The prefix of the environment's API keys.
    #[must_use]
    pub const fn key_prefix(self) -> &'static str {
        match self {
            Self::Sandbox => "vs_sandbox_",
            Self::Production => "vs_live_",
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
