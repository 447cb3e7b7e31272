//! The door of the orders: while as many are under way as may be, another one is turned away before anything of it is looked at.
//!
//! Rule: in an overload it is the refusals that must cost little, or they take the time of the orders that were admitted. So
//! this comes first, before the request has a span, a caller or a body; what gets through is admitted by the engine.

use std::time::Instant;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::Next;
use actix_web::{HttpResponse, ResponseError as _, web};
use vouchsafe_actors::flows::Unanswered;

use super::orders::unanswered_error;
use crate::body;
use crate::service::Service;
use crate::trace;

/// Where orders are placed.
const ORDERS: &str = "/api/v1/orders";

/// Middleware of the partner's listener.
///
/// # Errors
/// Those of the routes.
pub async fn admission<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, actix_web::Error> {
    let Some(response) = turned_away(&request) else {
        return next.call(request).await.map(ServiceResponse::map_into_left_body);
    };
    // A connection with something unread in it would be closed, and to open another one costs more than all the rest.
    let (request, payload) = request.into_parts();
    drop(body::read(request.headers(), payload).await);
    Ok(ServiceResponse::new(request, response).map_into_right_body())
}

fn turned_away(request: &ServiceRequest) -> Option<HttpResponse> {
    let is_order = request.method() == Method::POST && request.path() == ORDERS;
    let service = request.app_data::<web::Data<Service>>().filter(|_| is_order)?;
    // While it starts or drains, the gate says so.
    if !service.engine.is_full() || !service.gate.is_open() {
        return None;
    }
    let since = Instant::now();
    let refused = || unanswered_error(&Unanswered::Overloaded).error_response();
    let response = trace::alone(request.headers(), refused);
    service.metrics.answered(
        "partner",
        "POST",
        response.status().as_u16(),
        since.elapsed().as_secs_f64(),
    );
    Some(response)
}
