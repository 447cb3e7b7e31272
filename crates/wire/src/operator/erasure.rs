//! Erasure of personal data: bodies of `/erase` of orders, payouts and partners.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::text::validate_reason;
use crate::error_body::InvalidRequest;

/// Why personal data is erased.
#[derive(Debug, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct ErasureRequest {
    /// Reason, written to the audit trail, which keeps it: do not repeat personal data.
    #[schema(min_length = 1, max_length = 500)]
    #[arg(long)]
    reason: String,
}

impl ErasureRequest {
    /// The trimmed reason.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn validated(&self) -> Result<String, InvalidRequest> {
        validate_reason(&self.reason)
    }
}

/// Objects whose personal data this call has erased.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ErasureReport {
    pub orders: u64,
    pub payouts: u64,
    /// More orders of the partner are to be erased: repeat the call.
    pub has_more: bool,
}
