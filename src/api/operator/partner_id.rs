//! Partner ids in paths.

use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::partner::Partner;

use crate::api::error::ApiError;
use crate::api::operator::OperatorState;
use crate::api::path_id::PathId as _;

/// An existing partner. Reads the store: another node may have created the partner a moment ago.
pub(super) async fn find(service: &OperatorState, partner_id: PartnerId) -> Result<Partner, ApiError> {
    let found = service.store.partners.find(partner_id).await?;
    found.ok_or_else(PartnerId::not_found)
}
