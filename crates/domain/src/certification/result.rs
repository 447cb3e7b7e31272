//! Result of a certification check.

use serde::Serialize;
use time::OffsetDateTime;

use super::check::Check;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CheckState {
    /// No trial was decided.
    NotSeen,
    Passed,
    Failed,
}

impl CheckState {
    pub const ALL: [Self; 3] = [Self::NotSeen, Self::Passed, Self::Failed];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotSeen => "NOT_SEEN",
            Self::Passed => "PASSED",
            Self::Failed => "FAILED",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckResult {
    pub check: Check,
    pub state: CheckState,
    /// When the deciding trial ended.
    pub at: Option<OffsetDateTime>,
    pub reason: &'static str,
}
