//! Reason and reference of operators' decisions on orders, payouts, purchases and drifts.

use serde::Deserialize;
use utoipa::ToSchema;

use super::text::validate_text;
use crate::error_body::InvalidRequest;

/// In characters. Every response with the timeline contains the reason.
const MAX_REASON: usize = 500;

/// In characters, as for an order.
const MAX_REFERENCE: usize = 128;

/// Reason for a decision.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReasonRequest {
    /// Reason, shown to the partner in the timeline.
    #[schema(min_length = 1, max_length = 500)]
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

/// Trims and checks the reason of a decision.
///
/// # Errors
/// `VALIDATION_FAILED`.
pub fn validate_reason(text: &str) -> Result<String, InvalidRequest> {
    validate_text("reason", text, MAX_REASON)
}

/// Trims and checks the reference of a decision.
///
/// # Errors
/// `VALIDATION_FAILED`.
pub fn validate_reference(text: &str) -> Result<String, InvalidRequest> {
    validate_text("reference", text, MAX_REFERENCE)
}
