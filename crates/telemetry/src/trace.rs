//! Trace ids of requests (W3C Trace Context): in every response as `X-Trace-ID` and in every log line.
//!
//! A request with a valid `traceparent` continues that trace; others get a random id.

use std::time::Instant;

use actix_http::header::HeaderMap;
use uuid::Uuid;

tokio::task_local! {
    /// The trace of the current request.
    pub static REQUEST_TRACE: RequestTrace;
}

/// The trace id of a request, and when its head had been read.
#[derive(Debug)]
pub struct RequestTrace {
    pub trace_id: String,
    received_at: Instant,
}

impl RequestTrace {
    /// The trace of a request whose head was read just now.
    #[must_use]
    pub fn start(trace_id: String) -> Self {
        Self {
            trace_id,
            received_at: Instant::now(),
        }
    }
}

/// The parts of a well-formed `traceparent`, as hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traceparent<'a> {
    /// Trace id, 32 digits.
    pub trace_id: &'a str,
    /// Span id of the caller, 16 digits.
    pub span_id: &'a str,
    /// Trace flags, two digits. The lowest bit means sampled.
    pub flags: &'a str,
}

impl Traceparent<'_> {
    /// Whether the caller records the trace.
    #[must_use]
    pub fn is_sampled(self) -> bool {
        u8::from_str_radix(self.flags, 16).is_ok_and(|flags| flags & 1 == 1)
    }
}

/// The trace id of the current request; empty outside of a request.
#[must_use]
pub fn current_trace_id() -> String {
    let trace_id = REQUEST_TRACE.try_with(|trace| trace.trace_id.clone());
    trace_id.unwrap_or_default()
}

/// The trace id of the current request as 16 bytes, and when its head had been read.
#[must_use]
pub fn current_request() -> Option<(Uuid, Instant)> {
    let request = REQUEST_TRACE.try_with(|trace| Some((trace.trace_id.parse().ok()?, trace.received_at)));
    request.ok().flatten()
}

/// Parses `traceparent`: `00-<32 hex>-<16 hex>-<2 hex>`, neither id all zeros.
#[must_use]
pub fn parse_traceparent(headers: &HeaderMap) -> Option<Traceparent<'_>> {
    // Two values are ambiguous, so both are ignored.
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
    let is_supported = version != "00" || parts.next().is_none();
    (well_formed && is_supported).then_some(Traceparent {
        trace_id,
        span_id,
        flags,
    })
}

/// 32 hexadecimal digits.
#[must_use]
pub fn random_trace_id() -> String {
    Uuid::now_v7().simple().to_string()
}

#[cfg(test)]
mod tests {
    use actix_http::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers_with(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(
            HeaderName::from_static("traceparent"),
            HeaderValue::from_str(text).unwrap(),
        );
        headers
    }

    #[test]
    fn repeated_traceparent_is_ignored() {
        let mut headers = HeaderMap::new();
        for trace in [
            "4bf92f3577b34da6a3ce929d0e0e4736",
            "4bf92f3577b34da6a3ce929d0e0e4737",
        ] {
            let value = HeaderValue::from_str(&format!("00-{trace}-00f067aa0ba902b7-01")).unwrap();
            headers.append(HeaderName::from_static("traceparent"), value);
        }
        assert!(parse_traceparent(&headers).is_none());
    }

    #[test]
    fn well_formed_traceparent_is_parsed() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let (span, flags) = ("00f067aa0ba902b7", "01");
        let expected = Traceparent {
            trace_id: trace,
            span_id: span,
            flags,
        };
        for version in ["00", "cc"] {
            let headers = headers_with(&format!("{version}-{trace}-{span}-{flags}"));
            assert_eq!(parse_traceparent(&headers), Some(expected), "{version}");
            assert!(expected.is_sampled());
        }
        for (flags, is_sampled) in [("00", false), ("02", false), ("03", true), ("ff", true)] {
            let headers = headers_with(&format!("00-{trace}-{span}-{flags}"));
            let parsed = parse_traceparent(&headers).unwrap();
            assert_eq!(parsed.is_sampled(), is_sampled, "{flags}");
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
            assert_eq!(parse_traceparent(&headers_with(&broken)), None, "{broken}");
        }
    }
}
