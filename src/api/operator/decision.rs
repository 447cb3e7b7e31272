//! Request parts and errors shared by operators' decisions on orders, payouts and purchases.

use serde::Deserialize;
use utoipa::ToSchema;
use vouchsafe_actors::flows::FlowError;

use super::body::validate_text;
use crate::api::error::ApiError;
use vouchsafe_wire::error_code::Code;
use crate::api::partner::keyed_request_error;

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
    pub(super) fn validated(&self) -> Result<String, ApiError> {
        validate_reason(&self.reason)
    }
}

pub(super) fn validate_reason(text: &str) -> Result<String, ApiError> {
    validate_text("reason", text, MAX_REASON)
}

pub(super) fn validate_reference(text: &str) -> Result<String, ApiError> {
    validate_text("reference", text, MAX_REFERENCE)
}

/// Maps an engine error. After `IdempotencyInProgress` the decision may have been made.
pub(super) fn decision_error(error: &FlowError) -> ApiError {
    match error {
        FlowError::KeyInFlight | FlowError::OutcomeUnknown => ApiError::new(
            Code::IdempotencyInProgress,
            "a decision is in progress; check the current state before you repeat yours",
        ),
        other => keyed_request_error(other),
    }
}
