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
