//! Readiness gate of a listener: rejects requests while the service starts or drains, counts requests in
//! flight, and measures responses.

use std::time::Instant;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{CONNECTION, HeaderValue};
use actix_web::{HttpResponse, ResponseError as _, web};
use vouchsafe_wire::error_code::Code;

use super::refusals;
use super::trace::{TracedRequest, method_label};
use crate::api::error::ApiError;
use crate::metrics::FinishedRequest;
use crate::service::Service;

/// A step of both listeners; `listener` is the label of its metrics.
pub(super) async fn serve_if_ready<B: MessageBody + 'static>(
    listener: &'static str,
    request: TracedRequest,
    next: impl AsyncFnOnce(ServiceRequest) -> Result<ServiceResponse<B>, actix_web::Error>,
) -> Result<ServiceResponse<EitherBody<B>>, actix_web::Error> {
    let started = Instant::now();
    let TracedRequest {
        request,
        route,
        exemplar,
    } = request;
    let service = request
        .app_data::<web::Data<Service>>()
        .cloned()
        .ok_or_else(ApiError::unavailable)?;
    let method = method_label(request.method());
    // Monitoring stays available during a drain; only `/readyz` fails then. During the start nothing is
    // served, because the sandbox is not seeded yet.
    let is_monitoring = matches!(request.path(), "/healthz" | "/metrics") && service.gate.was_opened();
    let guard = service.gate.try_enter();
    let mut result = if guard.is_some() || is_monitoring {
        next(request).await.map(ServiceResponse::map_into_left_body)
    } else {
        Ok(request.into_response(not_ready_response()).map_into_right_body())
    };
    let status = match &result {
        Ok(response) => response.status(),
        Err(error) => error.as_response_error().status_code(),
    };
    refusals::report(&service, &result);
    service.metrics.record_request(FinishedRequest {
        listener,
        method,
        route,
        status: status.as_u16(),
        duration: started.elapsed(),
        exemplar,
    });
    if let Ok(response) = &mut result
        && !service.gate.is_open()
    {
        // Otherwise the client would reuse a connection that is about to be closed.
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    drop(guard);
    result
}

fn not_ready_response() -> HttpResponse {
    ApiError::new(
        Code::ServiceUnavailable,
        "the service is starting or shutting down; retry the same request",
    )
    .error_response()
}
