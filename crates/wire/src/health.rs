//! Operations of both listeners without authentication: health checks and the OpenAPI document.

use serde::Serialize;
use utoipa::ToSchema;

use crate::operation::{Method, Operation};

pub const GET_HEALTH: Operation<(), Health, ()> =
    Operation::new(Method::Get, "/healthz", (), "getHealth", "Check liveness");
pub const HEAD_HEALTH: Operation<(), Health, ()> = GET_HEALTH.head("headHealth");
pub const GET_READINESS: Operation<(), Health, ()> =
    Operation::new(Method::Get, "/readyz", (), "getReadiness", "Check readiness");
pub const HEAD_READINESS: Operation<(), Health, ()> = GET_READINESS.head("headReadiness");
pub const GET_OPEN_API: Operation<(), (), ()> = Operation::new(
    Method::Get,
    "/openapi.json",
    (),
    "getOpenApi",
    "Get this document",
);
pub const HEAD_OPEN_API: Operation<(), (), ()> = GET_OPEN_API.head("headOpenApi");

/// The health of the service.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// `alive` from `/healthz`, `ready` from `/readyz`. Any other state is an error response.
    status: &'static str,
    /// Present and true if stock is quarantined after a restore: it is not sold until an operator releases
    /// it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stock_quarantined: bool,
    /// Present and true if `VOUCHSAFE_DURABILITY` is `replicated`, and this node has found that commits do
    /// not wait for a standby, or that none is connected. Orders are accepted nevertheless.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replication_missing: bool,
}

impl Health {
    /// Body of `/healthz`.
    pub const ALIVE: Self = Self {
        status: "alive",
        stock_quarantined: false,
        replication_missing: false,
    };

    /// Body of `/readyz`.
    #[must_use]
    pub const fn ready(stock_quarantined: bool, replication_missing: bool) -> Self {
        Self {
            status: "ready",
            stock_quarantined,
            replication_missing,
        }
    }
}
