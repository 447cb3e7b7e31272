//! Health checks: `/healthz` (liveness) and `/readyz` (readiness to accept orders).

use std::time::Duration;

use actix_web::{HttpResponse, web};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::health::{GET_HEALTH, GET_READINESS, HEAD_HEALTH, HEAD_READINESS, Health};

use super::endpoint::Endpoint;
use super::error::{ApiError, ApiResult};
use crate::service::Service;

/// Timeout of the database ping.
const PING_DEADLINE: Duration = Duration::from_secs(1);

/// Both routes for GET and, because many load balancers use it, HEAD.
pub(super) fn endpoints() -> [Endpoint; 4] {
    [
        Endpoint::public(&GET_HEALTH, liveness),
        Endpoint::public(&HEAD_HEALTH, liveness),
        Endpoint::public(&GET_READINESS, readiness),
        Endpoint::public(&HEAD_READINESS, readiness),
    ]
}

/// `GET /healthz`.
async fn liveness() -> HttpResponse {
    HttpResponse::Ok().json(Health::ALIVE)
}

/// `GET /readyz`.
async fn readiness(service: web::Data<Service>) -> ApiResult {
    let ping = tokio::time::timeout(PING_DEADLINE, service.node.ping()).await;
    let Ok(Ok(stock_quarantined)) = ping else {
        return Err(not_ready("the database does not respond"));
    };
    let reason = if !service.engine.can_commit() {
        "commits are suspended"
    } else if !service.node.has_renewed_lease() && !service.engine.has_committed() {
        "the node's lease cannot be renewed"
    } else {
        return Ok(HttpResponse::Ok().json(Health::ready(
            stock_quarantined,
            service.replication().is_missing(),
        )));
    };
    Err(not_ready(reason))
}

fn not_ready(reason: &str) -> ApiError {
    ApiError::new(
        Code::ServiceUnavailable,
        format!("orders cannot be placed now: {reason}; retry later"),
    )
}
