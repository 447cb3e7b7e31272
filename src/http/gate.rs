//! The gate of a listener: counts what is inside, lets nobody in while the service drains, measures the answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{CONNECTION, HeaderValue};
use actix_web::middleware::Next;
use actix_web::web;

use crate::errors::{ApiError, Code};
use crate::service::Service;

/// How often a drain looks whether everybody has left.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// Counts the requests inside.
#[derive(Debug, Default)]
pub struct Gate {
    inside: AtomicUsize,
    closed: AtomicBool,
}

impl Gate {
    /// Lets nobody in any more, and waits until everybody has left.
    pub async fn drain(&self) {
        self.closed.store(true, Ordering::SeqCst);
        while self.inside.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(LOOK_AGAIN_AFTER).await;
        }
    }

    fn enter(self: &Arc<Self>) -> Option<Inside> {
        // Counted in before the look at the door, so that a drain either sees this request or turns it away.
        self.inside.fetch_add(1, Ordering::SeqCst);
        let inside = Inside(Arc::clone(self));
        (!self.closed.load(Ordering::SeqCst)).then_some(inside)
    }
}

/// A request inside; it counts itself out, also when its client goes away.
struct Inside(Arc<Gate>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Middleware of the partner's listener.
///
/// # Errors
/// Those of the routes, and `SERVICE_UNAVAILABLE` while the service drains.
pub async fn partner_gate(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    pass("partner", request, next).await
}

/// Middleware of the operator's listener.
///
/// # Errors
/// Those of the routes, and `SERVICE_UNAVAILABLE` while the service drains.
pub async fn operator_gate(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    pass("operator", request, next).await
}

async fn pass(
    listener: &'static str,
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let since = Instant::now();
    let service = request.app_data::<web::Data<Service>>().cloned().ok_or_else(ApiError::unavailable)?;
    let Some(inside) = service.gate.enter() else {
        return Err(ApiError::new(Code::ServiceUnavailable, "the service is going down; send the same request again").into());
    };
    let method = method_word(request.method());
    let mut response = next.call(request).await?;
    service.metrics.answered(listener, method, response.status().as_u16(), since.elapsed().as_secs_f64());
    if service.gate.closed.load(Ordering::Relaxed) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    drop(inside);
    Ok(response)
}

/// A label of a figure has few values, whatever clients send.
fn method_word(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
