//! Assigns each request its trace id and span. The span names the method and the route, never headers,
//! query or body.

use actix_web::HttpResponse;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::Method;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use tracing::{Instrument as _, Span, error_span};
use vouchsafe_domain::spans::SPANS;

use crate::metrics::ExemplarLabels;
use vouchsafe_telemetry::trace::{
    REQUEST_TRACE, RequestTrace, Traceparent, parse_traceparent, random_trace_id,
};

/// The response header with the trace id (spec part 7).
static X_TRACE_ID: HeaderName = HeaderName::from_static("x-trace-id");

/// A request with its route and its trace.
pub(super) struct TracedRequest {
    pub(super) request: ServiceRequest,
    /// The template; `None` if no route matches.
    pub(super) route: Option<String>,
    /// `None` if the caller does not record the trace.
    pub(super) exemplar: Option<ExemplarLabels>,
}

/// A step of both listeners: assigns the trace id, opens the span and sets `X-Trace-ID`, also on error
/// responses of later steps.
pub(super) async fn trace_request<B>(
    request: ServiceRequest,
    next: impl AsyncFnOnce(TracedRequest) -> Result<ServiceResponse<B>, actix_web::Error>,
) -> Result<ServiceResponse<B>, actix_web::Error> {
    let parent = parse_traceparent(request.headers());
    let trace_id = parent.map_or_else(random_trace_id, |parent| parent.trace_id.to_owned());
    let trace = RequestTrace::start(trace_id);
    let trace_id = &trace.trace_id;
    let header = HeaderValue::from_str(trace_id);
    let route = request.match_pattern();
    let span = request_span(&request, route.as_deref(), trace_id);
    let is_recorded = parent.is_none_or(Traceparent::is_sampled);
    vouchsafe_telemetry::start_span(&span, trace_id, parent);
    let request = TracedRequest {
        request,
        route,
        exemplar: is_recorded.then(|| ExemplarLabels::new(trace_id)).flatten(),
    };
    let result = async {
        next(request)
            .await
            .map_err(|error| (error.error_response(), error))
    };
    let mut result = REQUEST_TRACE.scope(trace, result).instrument(span).await;
    if let Ok(value) = header {
        let headers = match &mut result {
            Ok(response) => response.headers_mut(),
            Err((response, _)) => response.headers_mut(),
        };
        headers.insert(X_TRACE_ID.clone(), value);
    }
    result.map_err(|(response, error)| InternalError::from_response(error, response).into())
}

/// Creates a response with a trace id but without a span, for requests that are rejected early.
pub(crate) fn respond_without_span(
    headers: &HeaderMap,
    answer: impl FnOnce() -> HttpResponse,
) -> HttpResponse {
    let trace_id =
        parse_traceparent(headers).map_or_else(random_trace_id, |parent| parent.trace_id.to_owned());
    let header = HeaderValue::from_str(&trace_id);
    let mut response = REQUEST_TRACE.sync_scope(RequestTrace::start(trace_id), answer);
    if let Ok(value) = header {
        response.headers_mut().insert(X_TRACE_ID.clone(), value);
    }
    response
}

/// The span of a request. Its level is ERROR, so that a filter for errors only still keeps the trace id on
/// them.
fn request_span(request: &ServiceRequest, route: Option<&str>, trace_id: &str) -> Span {
    error_span!(
        target: SPANS,
        "request",
        trace.id = trace_id,
        http.method = method_label(request.method()),
        http.route = route,
    )
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
