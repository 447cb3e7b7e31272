//! How much is left, as every answer to a known caller says it (contract §8).
//!
//! | Header | Says |
//! |---|---|
//! | `RateLimit-Policy: "orders";q=100;w=60` | the limit of the request's class: at most `q` in any `w` seconds |
//! | `RateLimit: "orders";r=87;t=42` | `r` are left after this request, one more in `t` seconds; with none out, `t` is `w` |
//! | `Retry-After: 7`, on 429 alone | after so many seconds a request passes, if nobody else draws |
//!
//! Seconds are rounded up. A caller is known once its credentials and its address are right; a signature that is not makes
//! it unknown again.

use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{HttpMessage as _, HttpRequest};

use super::header::header_value;
use crate::access::limits::Class;
use crate::access::window::{Exhausted, Reading};
use crate::errors::{ApiError, Code};

static RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
static RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// How the window of a request's class stood when it was let through or refused.
#[derive(Debug, Clone, Copy)]
struct Noted {
    class: Class,
    reading: Reading,
}

/// Leaves with the request what its answer will say of the limit.
pub(super) fn note(request: &HttpRequest, class: Class, reading: Reading) {
    request.extensions_mut().insert(Noted { class, reading });
}

/// Takes back what was noted: to who did not sign it right, the request's class says nothing.
pub(super) fn forget(request: &HttpRequest) {
    request.extensions_mut().remove::<Noted>();
}

/// Middleware: writes what was noted on the answer.
///
/// # Errors
/// Those of the routes.
pub(super) async fn announced(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let mut response = next.call(request).await?;
    let noted = response.request().extensions().get::<Noted>().copied();
    if let Some(noted) = noted {
        for (name, value) in [
            (&RATELIMIT_POLICY, noted.policy()),
            (&RATELIMIT, noted.standing()),
        ] {
            if let Some(value) = value {
                response.headers_mut().insert(name.clone(), value);
            }
        }
    }
    Ok(response)
}

impl Noted {
    fn policy(&self) -> Option<HeaderValue> {
        let limit = self.reading.limit;
        header_value(format_args!(
            r#""{}";q={};w={}"#,
            self.class.as_str(),
            limit.quota,
            limit.window_s
        ))
    }

    fn standing(&self) -> Option<HeaderValue> {
        let Reading {
            remaining, more_in, ..
        } = self.reading;
        header_value(format_args!(
            r#""{}";r={remaining};t={}"#,
            self.class.as_str(),
            seconds(more_in)
        ))
    }
}

/// There is no room in the window of this class.
pub(super) fn exhausted(class: Class, Exhausted(reading): Exhausted) -> ApiError {
    let (limit, wait_s) = (reading.limit, seconds(reading.more_in));
    let message = format!(
        "at most {} requests of class {} pass in any {} s; send it again in {wait_s} s",
        limit.quota,
        class.as_str(),
        limit.window_s,
    );
    refused(message, wait_s)
}

/// Too many requests from an address have failed to authenticate. Why this one did is not told.
pub(super) fn too_many_failures(Exhausted(reading): Exhausted) -> ApiError {
    let wait_s = seconds(reading.more_in);
    let message = format!(
        "too many requests from this address have failed to authenticate; check key, secret, clock and signature, and \
         send it again in {wait_s} s"
    );
    refused(message, wait_s)
}

fn refused(message: String, wait_s: u32) -> ApiError {
    ApiError {
        retry_after_s: Some(wait_s),
        ..ApiError::new(Code::RateLimitExceeded, message)
    }
}

/// Rounded up, at least 1: at 0 a client would come back too early.
fn seconds(wait: Duration) -> u32 {
    let whole = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
    u32::try_from(whole).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::limits::Limit;

    #[test]
    fn seconds_are_rounded_up_to_one_at_least() {
        for (wait, expected) in [
            (Duration::ZERO, 1),
            (Duration::from_nanos(1), 1),
            (Duration::from_secs(1), 1),
            (Duration::from_nanos(1_000_000_001), 2),
            (Duration::from_millis(59_001), 60),
            (Duration::MAX, u32::MAX),
        ] {
            assert_eq!(seconds(wait), expected, "{wait:?}");
        }
    }

    #[test]
    fn the_headers_are_those_of_the_contract() {
        let noted = Noted {
            class: Class::Orders,
            reading: Reading {
                limit: Limit {
                    quota: 100,
                    window_s: 60,
                },
                remaining: 87,
                more_in: Duration::from_millis(41_200),
            },
        };
        assert_eq!(noted.policy().unwrap(), r#""orders";q=100;w=60"#);
        assert_eq!(noted.standing().unwrap(), r#""orders";r=87;t=42"#);
        let error = exhausted(Class::Orders, Exhausted(noted.reading));
        assert_eq!(
            (error.code, error.retry_after_s),
            (Code::RateLimitExceeded, Some(42))
        );
    }
}
