//! Load shedding for `POST /orders`: rejects an order with 503 while the engine is at its in-flight limit.
//!
//! Under overload rejections must be cheap, or they take CPU from the accepted orders. This step therefore
//! comes before tracing, authentication and body parsing. The engine still enforces the limit for requests
//! that pass here.

use std::time::Instant;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::{HttpResponse, ResponseError as _, web};
use vouchsafe_actors::flows::FlowError;
use vouchsafe_domain::limits::RequestClass;
use vouchsafe_wire::error_code::Code;

use super::{refusals, trace};
use crate::api::body;
use crate::api::error::keyed_request_error;
use crate::metrics::{FinishedRequest, ORDERS_ROUTE, PARTNER_LISTENER};
use crate::service::Service;
use vouchsafe_telemetry::refusal_log::RefusalKey;

/// A step of the partner listener.
pub(super) async fn shed_load<B: MessageBody>(
    request: ServiceRequest,
    next: impl AsyncFnOnce(ServiceRequest) -> Result<ServiceResponse<B>, actix_web::Error>,
) -> Result<ServiceResponse<EitherBody<B>>, actix_web::Error> {
    let Some(response) = overload_response(&request) else {
        return next(request).await.map(ServiceResponse::map_into_left_body);
    };
    // actix closes a connection with an unread body, and a new connection costs more than the whole
    // rejection.
    let (request, payload) = request.into_parts();
    body::discard(payload).await;
    Ok(ServiceResponse::new(request, response).map_into_right_body())
}

fn overload_response(request: &ServiceRequest) -> Option<HttpResponse> {
    let is_order = request.method() == Method::POST && request.path() == ORDERS_ROUTE;
    let service = request.app_data::<web::Data<Service>>().filter(|_| is_order)?;
    // While the service starts or drains, the readiness gate rejects the request with its own message.
    if !service.engine.is_full() || !service.gate.is_open() {
        return None;
    }
    let started = Instant::now();
    let reject = || keyed_request_error(&FlowError::Overloaded).error_response();
    let response = trace::respond_without_span(request.headers(), reject);
    let key = RefusalKey {
        partner_id: None,
        code: Code::ServiceUnavailable,
    };
    refusals::count(service, key, Some(RequestClass::Orders));
    service.metrics.record_request(FinishedRequest {
        listener: PARTNER_LISTENER,
        method: "POST",
        route: Some(ORDERS_ROUTE.to_owned()),
        status: response.status().as_u16(),
        duration: started.elapsed(),
        // It has no span.
        exemplar: None,
    });
    Some(response)
}
