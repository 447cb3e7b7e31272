//! The gate of a listener: counts what is inside, lets nobody in while the service starts or drains, measures the answers.

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

/// How often a drain looks whether everybody has left.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// Counts the requests inside. It is shut until it is opened.
#[derive(Debug, Default)]
pub struct Gate {
    inside: AtomicUsize,
    open: AtomicBool,
    /// Whether it ever was.
    opened: AtomicBool,
}

impl Gate {
    /// Lets everybody in.
    pub fn open(&self) {
        self.opened.store(true, Ordering::SeqCst);
        self.open.store(true, Ordering::SeqCst);
    }

    /// Whether it lets anybody in.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Lets nobody in any more, and waits until everybody has left.
    pub async fn drain(&self) {
        self.open.store(false, Ordering::SeqCst);
        while self.inside.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(LOOK_AGAIN_AFTER).await;
        }
    }

    fn enter(self: &Arc<Self>) -> Option<Inside> {
        // Counted in before the look at the door, so that a drain either sees this request or turns it away.
        self.inside.fetch_add(1, Ordering::SeqCst);
        let inside = Inside(Arc::clone(self));
        self.open.load(Ordering::SeqCst).then_some(inside)
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
/// Those of the routes, and `SERVICE_UNAVAILABLE` while the service starts or drains.
pub async fn partner_gate(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    pass("partner", request, next).await
}

/// Middleware of the operator's listener.
///
/// # Errors
/// Those of the routes, and `SERVICE_UNAVAILABLE` while the service starts or drains.
pub async fn operator_gate(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    pass("operator", request, next).await
}

async fn pass<B: MessageBody + 'static>(
    listener: &'static str,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, actix_web::Error> {
    let since = Instant::now();
    let service = request
        .app_data::<web::Data<Service>>()
        .cloned()
        .ok_or_else(ApiError::unavailable)?;
    let method = method_word(request.method());
    // Whoever watches a drain is told of it: only `/readyz` says that nobody should come any more. Of a start nothing is told
    // before it is over: the sandbox is not filled yet.
    let watches =
        matches!(request.path(), "/healthz" | "/metrics") && service.gate.opened.load(Ordering::Relaxed);
    let inside = service.gate.enter();
    let mut answered = if inside.is_some() || watches {
        next.call(request).await.map(ServiceResponse::map_into_left_body)
    } else {
        Ok(request.into_response(shut()).map_into_right_body())
    };
    let status = match &answered {
        Ok(response) => response.status(),
        Err(error) => error.as_response_error().status_code(),
    };
    service
        .metrics
        .answered(listener, method, status.as_u16(), since.elapsed().as_secs_f64());
    if let Ok(response) = &mut answered
        && !service.gate.is_open()
    {
        // Else the client would send its next request into a connection that is about to be cut.
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    drop(inside);
    answered
}

fn shut() -> HttpResponse {
    ApiError::new(
        Code::ServiceUnavailable,
        "the service is starting or going down; send the same request again",
    )
    .error_response()
}

/// A method as a label of figures and log lines: it has few values, whatever clients send.
pub(crate) fn method_word(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
