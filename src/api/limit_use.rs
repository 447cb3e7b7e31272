//! What credentials use of their rate limits on all nodes.

use strum::VariantArray as _;
use vouchsafe_domain::ids::CredentialId;
use vouchsafe_domain::limits::{Limits, RequestClass};
use vouchsafe_security::sliding_window::{Exhausted, RateLimitStatus};
use vouchsafe_wire::limit_use::LimitUse;

use super::error::ApiError;
use crate::service::Service;

/// The use of each class by these credentials, each with its family, of a partner with these limits.
pub(super) async fn read(
    service: &Service,
    credentials: &[(CredentialId, CredentialId)],
    limits: &Limits,
) -> Result<Vec<LimitUse>, ApiError> {
    let owners = credentials.iter().map(|(_, family_id)| family_id.as_uuid());
    service.shared_limits.refresh(owners.collect()).await?;
    let uses = credentials.iter().flat_map(|(credential_id, family_id)| {
        RequestClass::VARIANTS.iter().map(|class| {
            let key = service.rate_limits.key_of_family(*family_id, *class, limits);
            let (Ok(status) | Err(Exhausted(status))) =
                service.rate_limits.peek(key, service.clock.monotonic());
            let is_default = limits.get(*class).is_none();
            let RateLimitStatus { limit, remaining, .. } = status;
            LimitUse::new(*credential_id, *class, limit, remaining, is_default)
        })
    });
    Ok(uses.collect())
}
