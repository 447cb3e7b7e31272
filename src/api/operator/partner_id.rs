//! Partner ids in paths.

use vouchsafe_domain::ids::PartnerId;
use vouchsafe_wire::error_code::Code;

use crate::api::error::ApiError;

/// An invalid ID is reported as not found.
pub(super) fn parse_id(text: &str) -> Result<PartnerId, ApiError> {
    text.parse().map_err(|_| not_found())
}

pub(super) fn not_found() -> ApiError {
    ApiError::new(
        Code::PartnerNotFound,
        "no such partner; GET /admin/v1/partners lists all",
    )
}
