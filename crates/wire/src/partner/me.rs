//! Body of `GET /me`.

use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::api_scope::ApiScope;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_security::environment::Environment;

use crate::limit_use::LimitUse;
use crate::partner::credentials::OwnCredential;

/// Your account, and the credential that sent the request.
#[derive(Serialize, ToSchema)]
pub struct Me {
    /// `sandbox` or `production`.
    #[schema(value_type = String)]
    pub environment: Environment,
    /// Your partner id.
    pub partner_id: PartnerId,
    /// Your name.
    pub name: String,
    /// Networks from which you may call.
    pub allowlist: Allowlist,
    /// Seconds after its acceptance during which an order can be cancelled.
    pub cancel_window_s: u32,
    /// The credential that sent the request.
    pub credential: OwnCredential,
    /// What the credential may do.
    pub scopes: Vec<ApiScope>,
    /// Rate limits of the credential, and what it has used of them, this request included.
    pub limits: Vec<LimitUse>,
}
