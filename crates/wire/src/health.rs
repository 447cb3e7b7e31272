//! Response body of the health checks.

use serde::Serialize;
use utoipa::ToSchema;

/// The health of the service.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Health)]
pub struct HealthBody {
    /// `alive` from `/healthz`, `ready` from `/readyz`. Any other state is an error response.
    status: &'static str,
}

impl HealthBody {
    /// From `/healthz`.
    pub const ALIVE: Self = Self { status: "alive" };

    /// From `/readyz`.
    pub const READY: Self = Self { status: "ready" };
}
