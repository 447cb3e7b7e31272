//! Reason of operators' decisions on orders and purchases.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::text::validate_reason;
use crate::error_body::InvalidRequest;

/// Reason for a decision.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ReasonRequest {
    /// Reason, shown to the partner in the timeline.
    #[schema(min_length = 1, max_length = 500)]
    #[cfg_attr(feature = "clap", arg(long))]
    reason: String,
}

impl ReasonRequest {
    /// The trimmed reason.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn validated(&self) -> Result<String, InvalidRequest> {
        validate_reason(&self.reason)
    }
}
