//! Use of the rate limits of a credential.

use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_domain::ids::CredentialId;
use vouchsafe_domain::limits::{Limit, RequestClass};

/// How much of a rate limit a credential uses.
#[derive(Serialize, ToSchema)]
pub struct LimitUse {
    /// Credential ID.
    credential_id: CredentialId,
    /// Class of requests: `orders`, `general`, `auth` or `vouchers`.
    #[schema(value_type = String)]
    class: RequestClass,
    /// Requests that are allowed in the window.
    quota: u32,
    /// Length of the window in seconds.
    window_s: u32,
    /// Requests of the credential in the last window.
    used: u32,
    /// Whether it is the limit of the settings; else it is the partner's own.
    is_default: bool,
}

impl LimitUse {
    #[must_use]
    pub const fn new(
        credential_id: CredentialId,
        class: RequestClass,
        limit: Limit,
        remaining: u32,
        is_default: bool,
    ) -> Self {
        Self {
            credential_id,
            class,
            quota: limit.quota,
            window_s: limit.window_s,
            used: limit.quota.saturating_sub(remaining),
            is_default,
        }
    }

    /// The position after this entry, in list order.
    #[must_use]
    pub fn cursor(&self) -> String {
        format!("{} {}", self.credential_id, self.class.into_str())
    }
}
