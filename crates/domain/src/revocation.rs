//! Revocation of a credential, and what happens to those rotated from it.

use serde::Serialize;

use crate::ids::CredentialId;
use crate::labels::labels;

labels! {
    /// Whether a revocation covers the credentials that came from the credential by rotation, directly or
    /// through others.
    #[derive(Default)]
    pub enum DescendantPolicy: "lowercase", "What happens to credentials rotated from it." {
        /// The secret may have leaked: its holder may have rotated it.
        #[default]
        Revoke,
        /// The rotations are known to be the partner's own.
        Keep,
    }
}

/// Outcome of a revocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Revocation {
    /// The credential that is revoked.
    pub credential_id: CredentialId,
    /// Credentials that this request revoked: this one and those rotated from it. Empty if all were revoked
    /// before.
    pub revoked: Vec<CredentialId>,
    /// Credentials rotated from it that stay valid.
    pub live_descendants: Vec<CredentialId>,
}
