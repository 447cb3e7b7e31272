//! Response body of the health checks.

use serde::Serialize;
use utoipa::ToSchema;

/// The health of the service.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Health)]
pub struct HealthBody {
    /// `alive` from `/healthz`, `ready` from `/readyz`. Any other state is an error response.
    status: &'static str,
    /// Present and true if stock is quarantined after a restore: it is not sold until an operator releases it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stock_quarantined: bool,
}

impl HealthBody {
    /// From `/healthz`.
    pub const ALIVE: Self = Self {
        status: "alive",
        stock_quarantined: false,
    };

    /// From `/readyz`.
    #[must_use]
    pub const fn ready(stock_quarantined: bool) -> Self {
        Self {
            status: "ready",
            stock_quarantined,
        }
    }
}
