//! Rate-limit response headers, sent to every authenticated caller (contract §8).
//!
//! | Header | Meaning |
//! |---|---|
//! | `RateLimit-Policy: "orders";q=100;w=60` | the limit of the request's class: at most `q` in any `w` seconds |
//! | `RateLimit: "orders";r=87;t=42` | `r` requests remain, one more after `t` seconds; with a full quota `t` is `w` |
//! | `Retry-After: 7`, only with 429 | the next request is accepted after so many seconds, unless other requests use the quota |
//!
//! Seconds are rounded up. A request with valid credentials but an invalid signature gets none of these
//! headers.

use std::time::Duration;

use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderName, HeaderValue, WWW_AUTHENTICATE};
use actix_web::{HttpMessage as _, HttpRequest};
use vouchsafe_domain::limits::{Limit, RequestClass};
use vouchsafe_security::sliding_window::{Exhausted, RateLimitStatus};
use vouchsafe_wire::error_code::Code;

use crate::api::error::ApiError;
use crate::api::header::header_value;

static RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
static RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// Every 401 has a challenge (RFC 9110, section 11.6.1). No registered scheme has two headers and a
/// signature.
const CHALLENGE: HeaderValue = HeaderValue::from_static("ApiKey realm=\"Vouchsafe partner API\"");

/// The rate-limit status of a request's class when the request was accepted or rejected.
#[derive(Debug, Clone, Copy)]
struct RateLimitReport {
    class: RequestClass,
    status: RateLimitStatus,
}

/// Attaches the status to the request, for [`write_headers`].
pub(super) fn record(request: &HttpRequest, class: RequestClass, reading: RateLimitStatus) {
    request.extensions_mut().insert(RateLimitReport {
        class,
        status: reading,
    });
}

/// Removes the status: an unauthenticated caller must not learn the quota of the API key.
pub(super) fn discard(request: &HttpRequest) {
    request.extensions_mut().remove::<RateLimitReport>();
}

/// A step of the partner listener: writes the recorded status into the response headers, and the challenge of
/// a 401.
pub(super) async fn write_headers<B>(
    request: ServiceRequest,
    next: impl AsyncFnOnce(ServiceRequest) -> Result<ServiceResponse<B>, actix_web::Error>,
) -> Result<ServiceResponse<B>, actix_web::Error> {
    let mut response = next(request).await?;
    if response.status() == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, CHALLENGE);
    }
    let report = response.request().extensions().get::<RateLimitReport>().copied();
    if let Some(report) = report {
        for (name, value) in [
            (&RATELIMIT_POLICY, report.policy_header()),
            (&RATELIMIT, report.limit_header()),
        ] {
            if let Some(value) = value {
                response.headers_mut().insert(name.clone(), value);
            }
        }
    }
    Ok(response)
}

impl RateLimitReport {
    fn policy_header(&self) -> Option<HeaderValue> {
        let limit = self.status.limit;
        header_value(format_args!(
            r#""{}";q={};w={}"#,
            self.class.into_str(),
            limit.quota,
            limit.window_s
        ))
    }

    fn limit_header(&self) -> Option<HeaderValue> {
        let RateLimitStatus {
            remaining,
            next_slot_in: more_in,
            ..
        } = self.status;
        header_value(format_args!(
            r#""{}";r={remaining};t={}"#,
            self.class.into_str(),
            whole_seconds(more_in)
        ))
    }
}

/// The 429 for an exhausted quota of a request class: of a credential with the limit `own`, or of its
/// partner's ceiling.
pub(super) fn rate_limited_error(class: RequestClass, Exhausted(reading): Exhausted, own: Limit) -> ApiError {
    let (limit, wait_s) = (reading.limit, whole_seconds(reading.next_slot_in));
    let counted = if limit == own {
        ""
    } else {
        " with all keys of the partner together"
    };
    let message = format!(
        "rate limit exceeded: at most {} requests of class {} in any {} s{counted}; retry in {wait_s} s",
        limit.quota,
        class.into_str(),
        limit.window_s,
    );
    retry_later(message, wait_s)
}

/// The 429 for an address with too many authentication failures. It does not say why this request failed.
pub(super) fn too_many_failures_error(Exhausted(reading): Exhausted, credentials: &str) -> ApiError {
    let wait_s = whole_seconds(reading.next_slot_in);
    let message = format!(
        "too many failed authentications from this address; check {credentials}, and retry in {wait_s} s"
    );
    retry_later(message, wait_s)
}

fn retry_later(message: String, wait_s: u32) -> ApiError {
    ApiError {
        retry_after_s: Some(wait_s),
        ..ApiError::new(Code::RateLimitExceeded, message)
    }
}

/// Rounds up, to at least 1: with 0 a client would retry too early.
fn whole_seconds(wait: Duration) -> u32 {
    let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
    u32::try_from(seconds).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_below_a_second_is_rounded_up_to_one() {
        for (wait, expected) in [
            (Duration::ZERO, 1),
            (Duration::from_nanos(1), 1),
            (Duration::from_secs(1), 1),
            (Duration::from_nanos(1_000_000_001), 2),
            (Duration::from_millis(59_001), 60),
            (Duration::MAX, u32::MAX),
        ] {
            assert_eq!(whole_seconds(wait), expected, "{wait:?}");
        }
    }

    #[test]
    fn rate_limit_headers_match_the_contract() {
        let report = RateLimitReport {
            class: RequestClass::Orders,
            status: RateLimitStatus {
                limit: Limit {
                    quota: 100,
                    window_s: 60,
                },
                remaining: 87,
                next_slot_in: Duration::from_millis(41_200),
            },
        };
        assert_eq!(report.policy_header().unwrap(), r#""orders";q=100;w=60"#);
        assert_eq!(report.limit_header().unwrap(), r#""orders";r=87;t=42"#);
        let of_credential = report.status.limit;
        let error = rate_limited_error(RequestClass::Orders, Exhausted(report.status), of_credential);
        assert_eq!(
            (error.code, error.retry_after_s),
            (Code::RateLimitExceeded, Some(42))
        );
        assert!(!error.message.contains("all keys"), "{}", error.message);
        let of_credential = Limit {
            quota: 40,
            ..of_credential
        };
        let error = rate_limited_error(RequestClass::Orders, Exhausted(report.status), of_credential);
        assert!(
            error
                .message
                .contains("at most 100 requests of class orders in any 60 s with all keys of the partner"),
            "{}",
            error.message
        );
    }
}
