//! Partner ids in paths.

use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::partner::Partner;
use vouchsafe_wire::error_code::Code;

use crate::api::error::ApiError;
use crate::service::Service;

/// An invalid ID is reported as not found.
pub(super) fn parse_id(text: &str) -> Result<PartnerId, ApiError> {
    text.parse().map_err(|_| not_found())
}

/// An existing partner. Reads the store: another node may have created the partner a moment ago.
pub(super) async fn find(service: &Service, text: &str) -> Result<Partner, ApiError> {
    let found = service.operator_store.partners.find(parse_id(text)?).await?;
    found.ok_or_else(not_found)
}

pub(super) fn not_found() -> ApiError {
    ApiError::new(
        Code::PartnerNotFound,
        "no such partner; GET /admin/v1/partners lists all",
    )
}
