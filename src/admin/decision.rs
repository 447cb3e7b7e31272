//! What do operators' decisions have in common? Words of bounded length, and what is answered where one was not made.

use serde::Deserialize;
use utoipa::ToSchema;
use vouchsafe_actors::flows::Unanswered;

use super::body::bounded;
use crate::errors::{ApiError, Code};
use crate::http::unanswered_error;

/// Longest reason, in characters: some sentences. It is kept in a timeline that every reading shows.
const MAX_REASON: usize = 500;

/// Longest reference of a payment, in characters: as for an order.
const MAX_REFERENCE: usize = 128;

/// Why an operator decides so.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Because {
    /// Why: the partner reads it in the timeline.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
}

impl Because {
    /// The reason.
    pub(super) fn reason(&self) -> Result<String, ApiError> {
        reason(&self.reason)
    }
}

/// A reason, trimmed.
pub(super) fn reason(text: &str) -> Result<String, ApiError> {
    bounded("reason", text, MAX_REASON)
}

/// What a payment is called, trimmed.
pub(super) fn reference(text: &str) -> Result<String, ApiError> {
    bounded("reference", text, MAX_REFERENCE)
}

/// Why a decision was not made, or is not known to be.
pub(super) fn undecided(error: &Unanswered) -> ApiError {
    match error {
        Unanswered::KeyBusy | Unanswered::OutcomeUnknown => ApiError::new(
            Code::IdempotencyInProgress,
            "a decision on it is under way; look at it again before you repeat yours",
        ),
        other => unanswered_error(other),
    }
}
