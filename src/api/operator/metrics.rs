//! `GET /metrics`, for Prometheus.

use actix_web::http::header::{Accept, Header as _, VARY};
use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_security::client_address::X_FORWARDED_FOR;
use vouchsafe_security::metrics_access::Scrape;
use vouchsafe_security::security_event::SecurityEventReason;
use vouchsafe_wire::error_code::Code;

use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::listener_peers::client_address;
use crate::api::middleware::operator::bearer_token;
use crate::api::middleware::security_events::reject;
use crate::api::operator::OperatorState;
use crate::metrics::MetricsFormat;

/// Headers of requests that a proxy forwards.
const FORWARDED: [&str; 4] = [X_FORWARDED_FOR, "forwarded", "via", "x-real-ip"];

pub(super) async fn metrics(service: web::Data<OperatorState>, request: HttpRequest) -> ApiResult {
    check_access(&service, &request)?;
    // A header that is not ASCII expresses no preference.
    let accept = Accept::parse(&request).unwrap_or_else(|_| Accept::star());
    let format = MetricsFormat::negotiate(&accept);
    Ok(HttpResponse::Ok()
        .content_type(format.content_type())
        .insert_header((VARY, "Accept"))
        .body(service.metrics.render(
            format,
            &service.engine,
            &service.procurement,
            &service.deliveries,
            &service.rate_limits,
        )))
}

fn check_access(service: &OperatorState, request: &HttpRequest) -> Result<(), ApiError> {
    let scrape = Scrape {
        token: bearer_token(request.headers()),
        client: client_address(request)?.known_ip(),
        is_forwarded: FORWARDED.iter().any(|name| request.headers().contains_key(*name)),
    };
    if service.metrics_access.is_permitted(&scrape) {
        return Ok(());
    }
    Err(if service.metrics_access.token.is_some() {
        let message = "the metrics token is missing or wrong; send Authorization: Bearer TOKEN";
        // Only a token can be a guess.
        if scrape.token.is_some() {
            reject(service, request, SecurityEventReason::MetricsToken, message)
        } else {
            ApiError::new(Code::InvalidCredentials, message)
        }
    } else {
        let message = "this address may not read the metrics; add it to VOUCHSAFE_METRICS_NETWORKS, or set a token with \
                       VOUCHSAFE_METRICS_TOKEN";
        ApiError::new(Code::IpNotAllowed, message)
    })
}
