//! Partner ids in paths.

use vouchsafe_domain::ids::PartnerId;
use vouchsafe_wire::error_code::Code;

use crate::api::error::ApiError;
use crate::service::Service;

/// An invalid ID is reported as not found.
pub(super) fn parse_id(text: &str) -> Result<PartnerId, ApiError> {
    text.parse().map_err(|_| not_found())
}

/// The ID of an existing partner. Reads the store: another node may have created the partner a moment ago.
pub(super) async fn find(service: &Service, text: &str) -> Result<PartnerId, ApiError> {
    let partner_id = parse_id(text)?;
    let found = service.operator_store.partners.find(partner_id).await?;
    found.map(|_| partner_id).ok_or_else(not_found)
}

pub(super) fn not_found() -> ApiError {
    ApiError::new(
        Code::PartnerNotFound,
        "no such partner; GET /admin/v1/partners lists all",
    )
}
