//! `/healthz`: the process lives. `/readyz`: an order could be placed now.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use crate::errors::{ApiError, Code};
use crate::service::Service;

/// How long the database may take to say that it is there.
const PING_DEADLINE: Duration = Duration::from_secs(1);

/// How it is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Health)]
pub(crate) struct HealthBody {
    /// `alive` or `ready`; what is neither is answered with an error.
    status: &'static str,
}

/// `GET /healthz`.
pub async fn alive() -> HttpResponse {
    HttpResponse::Ok().json(HealthBody { status: "alive" })
}

/// `GET /readyz`.
///
/// # Errors
/// `SERVICE_UNAVAILABLE` while the database does not answer or a commit's outcome is being settled.
pub async fn ready(service: web::Data<Service>) -> Result<HttpResponse, ApiError> {
    let answers = matches!(
        tokio::time::timeout(PING_DEADLINE, service.store.ping()).await,
        Ok(Ok(()))
    );
    if answers && service.engine.flows() {
        return Ok(HttpResponse::Ok().json(HealthBody { status: "ready" }));
    }
    let reason = if answers {
        "commits do not flow"
    } else {
        "the database does not answer"
    };
    Err(ApiError::new(
        Code::ServiceUnavailable,
        format!("no order can be placed now: {reason}"),
    ))
}
