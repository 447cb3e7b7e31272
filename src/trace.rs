//! Trace ids: every request has one, every answer and every log line about it carries it.
//!
//! A W3C `traceparent` that comes with the request is continued; otherwise a random id is made. Lines that are logged while
//! a request is answered have the fields of its span, wherever they come from. Rule: a span names the route, never what was
//! sent: no header, no query, no body.

use actix_web::HttpResponse;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use tracing::{Instrument as _, Span, error_span};
use vouchsafe_actors::SPANS;

use crate::http::method_word;
use crate::telemetry;

/// The response header with the trace id (spec part 7).
static X_TRACE_ID: HeaderName = HeaderName::from_static("x-trace-id");

tokio::task_local! {
    static TRACE_ID: String;
}

/// What a well-formed `traceparent` says, in its own hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traceparent<'a> {
    /// The trace that is continued: 32 digits.
    pub trace_id: &'a str,
    /// The span of who calls: 16 digits.
    pub span_id: &'a str,
    /// What is done with the trace: two digits, of which the last bit says that it is recorded.
    pub flags: &'a str,
}

/// The trace id of the request that is being answered; empty outside of one.
#[must_use]
pub fn current() -> String {
    TRACE_ID.try_with(Clone::clone).unwrap_or_default()
}

/// Middleware: gives the request its trace id, and the response the header; also the one that an inner middleware
/// refuses with, which is written while the id is known.
///
/// # Errors
/// Those of the routes.
pub async fn traced(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let parent = incoming(request.headers());
    let trace_id = parent.map_or_else(random, |parent| parent.trace_id.to_owned());
    let header = HeaderValue::from_str(&trace_id);
    let span = span(&request, &trace_id);
    telemetry::begin(&span, &trace_id, parent);
    let answered = async {
        next.call(request)
            .await
            .map_err(|error| (error.error_response(), error))
    };
    let mut answered = TRACE_ID.scope(trace_id, answered).instrument(span).await;
    if let Ok(value) = header {
        let headers = match &mut answered {
            Ok(response) => response.headers_mut(),
            Err((response, _)) => response.headers_mut(),
        };
        headers.insert(X_TRACE_ID.clone(), value);
    }
    answered.map_err(|(response, error)| InternalError::from_response(error, response).into())
}

/// The answer to a request that nothing else is done for: with a trace id as every other, and without a span.
pub fn alone(headers: &HeaderMap, answer: impl FnOnce() -> HttpResponse) -> HttpResponse {
    let trace_id = incoming(headers).map_or_else(random, |parent| parent.trace_id.to_owned());
    let header = HeaderValue::from_str(&trace_id);
    let mut response = TRACE_ID.sync_scope(trace_id, answer);
    if let Ok(value) = header {
        response.headers_mut().insert(X_TRACE_ID.clone(), value);
    }
    response
}

/// What every line about the request says of it. Of the level of errors, so that a filter that lets only those through
/// does not take the trace id from them.
fn span(request: &ServiceRequest, trace_id: &str) -> Span {
    error_span!(
        target: SPANS,
        "request",
        trace.id = trace_id,
        http.method = method_word(request.method()),
        http.route = request.match_pattern(),
    )
}

/// A well-formed `traceparent`: `00-<32 hex>-<16 hex>-<2 hex>`, neither id all zeros.
fn incoming(headers: &HeaderMap) -> Option<Traceparent<'_>> {
    // Of two nobody knows which one is meant.
    let mut values = headers.get_all("traceparent");
    let (Some(only), None) = (values.next(), values.next()) else {
        return None;
    };
    let text = only.to_str().ok()?;
    let mut parts = text.split('-');
    let (version, trace_id, span_id, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let hex = |part: &str, length: usize| {
        part.len() == length
            && part
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let id = |part: &str, length: usize| hex(part, length) && part.bytes().any(|b| b != b'0');
    let well_formed =
        hex(version, 2) && version != "ff" && id(trace_id, 32) && id(span_id, 16) && hex(flags, 2);
    let known = version != "00" || parts.next().is_none();
    (well_formed && known).then_some(Traceparent {
        trace_id,
        span_id,
        flags,
    })
}

fn random() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(
            HeaderName::from_static("traceparent"),
            HeaderValue::from_str(text).unwrap(),
        );
        headers
    }

    #[test]
    fn of_two_traceparents_none_is_continued() {
        let mut headers = HeaderMap::new();
        for trace in [
            "4bf92f3577b34da6a3ce929d0e0e4736",
            "4bf92f3577b34da6a3ce929d0e0e4737",
        ] {
            let value = HeaderValue::from_str(&format!("00-{trace}-00f067aa0ba902b7-01")).unwrap();
            headers.append(HeaderName::from_static("traceparent"), value);
        }
        assert!(incoming(&headers).is_none());
    }

    #[test]
    fn a_traceparent_is_continued() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let (span, flags) = ("00f067aa0ba902b7", "01");
        let said = Traceparent {
            trace_id: trace,
            span_id: span,
            flags,
        };
        for version in ["00", "cc"] {
            let headers = with(&format!("{version}-{trace}-{span}-{flags}"));
            assert_eq!(incoming(&headers), Some(said), "{version}");
        }
        for broken in [
            format!("00-{trace}-00f067aa0ba902b7"),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{trace}-0000000000000000-01"),
            format!("ff-{trace}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", trace.to_uppercase()),
            format!("00-{trace}-00f067aa0ba902b7-01-more"),
            "hello".to_owned(),
        ] {
            assert_eq!(incoming(&with(&broken)), None, "{broken}");
        }
    }
}
