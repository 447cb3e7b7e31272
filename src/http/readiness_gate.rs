//! Readiness gate of a listener: rejects requests while the service starts or drains, counts requests in flight, and measures
//! responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{CONNECTION, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{HttpResponse, ResponseError as _, web};

use crate::errors::{ApiError, Code};
use crate::service::Service;

const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Counts the requests in flight. It rejects requests until [`ReadinessGate::open`].
#[derive(Debug, Default)]
pub struct ReadinessGate {
    in_flight: AtomicUsize,
    open: AtomicBool,
    /// Distinguishes draining from starting: stays true after the first [`ReadinessGate::open`].
    was_opened: AtomicBool,
}

impl ReadinessGate {
    /// Accepts requests from now on.
    pub fn open(&self) {
        self.was_opened.store(true, Ordering::SeqCst);
        self.open.store(true, Ordering::SeqCst);
    }

    /// Whether the gate accepts requests.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Rejects new requests and waits until no request is in flight.
    pub async fn drain(&self) {
        self.open.store(false, Ordering::SeqCst);
        while self.in_flight.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(DRAIN_POLL_INTERVAL).await;
        }
    }

    fn try_enter(self: &Arc<Self>) -> Option<InFlightGuard> {
        // Counted before `open` is read: otherwise a drain could see no request in flight while this one is accepted.
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let guard = InFlightGuard(Arc::clone(self));
        self.open.load(Ordering::SeqCst).then_some(guard)
    }
}

/// Counts a request as in flight until dropped, also when its client disconnects.
struct InFlightGuard(Arc<ReadinessGate>);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Middleware of the partner listener.
///
/// # Errors
/// Returns the errors of the inner service. While the service starts or drains the response is `SERVICE_UNAVAILABLE`.
pub async fn partner_gate(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    serve_if_ready("partner", request, next).await
}

/// Middleware of the operator listener.
///
/// # Errors
/// Returns the errors of the inner service. While the service starts or drains the response is `SERVICE_UNAVAILABLE`.
pub async fn operator_gate(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    serve_if_ready("operator", request, next).await
}

async fn serve_if_ready<B: MessageBody + 'static>(
    listener: &'static str,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, actix_web::Error> {
    let started = Instant::now();
    let service = request
        .app_data::<web::Data<Service>>()
        .cloned()
        .ok_or_else(ApiError::unavailable)?;
    let method = method_label(request.method());
    // Monitoring stays available during a drain; only `/readyz` fails then. During the start nothing is served, because the
    // sandbox is not seeded yet.
    let is_monitoring =
        matches!(request.path(), "/healthz" | "/metrics") && service.gate.was_opened.load(Ordering::Relaxed);
    let guard = service.gate.try_enter();
    let mut result = if guard.is_some() || is_monitoring {
        next.call(request).await.map(ServiceResponse::map_into_left_body)
    } else {
        Ok(request.into_response(not_ready_response()).map_into_right_body())
    };
    let status = match &result {
        Ok(response) => response.status(),
        Err(error) => error.as_response_error().status_code(),
    };
    service
        .metrics
        .record_response(listener, method, status.as_u16(), started.elapsed().as_secs_f64());
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

/// A method as a metric label and log field, with a bounded number of values whatever clients send.
pub(crate) fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
