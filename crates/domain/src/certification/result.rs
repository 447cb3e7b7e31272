//! Result of a certification check.

use serde::Serialize;
use strum::{EnumString, IntoStaticStr, VariantArray};
use time::OffsetDateTime;

use super::check::Check;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, EnumString, IntoStaticStr, VariantArray)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE", const_into_str)]
pub enum CheckState {
    /// No trial was decided.
    NotSeen,
    Passed,
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckResult {
    pub check: Check,
    pub state: CheckState,
    /// When the deciding trial ended.
    pub at: Option<OffsetDateTime>,
    pub reason: &'static str,
}

/// A failed trial after the certification was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckWarning {
    pub check: Check,
    pub at: OffsetDateTime,
    pub reason: &'static str,
}

/// What the observations of a partner's client say about its certification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificationResult {
    /// When all checks were passed for the first time. Later failures do not take it back.
    pub first_passed_at: Option<OffsetDateTime>,
    /// One per check.
    pub checks: Vec<CheckResult>,
    /// Checks whose newest trial failed after that.
    pub warnings: Vec<CheckWarning>,
}
