//! Errors shared by operators' decisions on orders, payouts and purchases.

use vouchsafe_actors::flows::FlowError;
use vouchsafe_wire::error_code::Code;

use crate::api::error::{ApiError, keyed_request_error};

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
