//! `/healthz`: the process lives. `/readyz`: an order could be placed now.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::resource;
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

/// Both, for GET and, as many a balancer asks, for HEAD.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .service(
            resource("/healthz", "GET, HEAD")
                .route(web::get().to(alive))
                .route(web::head().to(alive)),
        )
        .service(
            resource("/readyz", "GET, HEAD")
                .route(web::get().to(ready))
                .route(web::head().to(ready)),
        );
}

/// `GET /healthz`.
async fn alive() -> HttpResponse {
    HttpResponse::Ok().json(HealthBody { status: "alive" })
}

/// `GET /readyz`.
///
/// # Errors
/// `SERVICE_UNAVAILABLE` while the database does not answer or a commit's outcome is being settled.
async fn ready(service: web::Data<Service>) -> Result<HttpResponse, ApiError> {
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
