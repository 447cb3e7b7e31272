//! Security events of requests: counted, limited per client address, logged, and summed up for the audit log.

use actix_web::HttpRequest;
use tracing::warn;
use vouchsafe_security::rate_limiter::AuthAttempt;
use vouchsafe_security::security_event::{SecurityEvent, SecurityEventReason};
use vouchsafe_security::sliding_window::Exhausted;
use vouchsafe_telemetry::security_events::LogDecision;
use vouchsafe_wire::error_code::Code;

use super::listener_peers::client_address;
use super::rate_limit_headers::too_many_failures_error;
use crate::api::error::ApiError;
use crate::service::Service;

/// Records an event. The limits of failed authentications and of audit entries bound the number of log lines.
///
/// # Errors
/// [`Exhausted`] above the limit of failed authentications of the client's address.
pub(super) fn record(service: &Service, event: &SecurityEvent) -> Result<(), Exhausted> {
    service.metrics.security_events().record(event.reason);
    let decision = service.security_events.record(event, service.clock.now());
    let status = service
        .rate_limits
        .record_auth_failure(event.address, service.clock.monotonic());
    let is_logged = match decision {
        LogDecision::Always => true,
        LogDecision::WithinRateLimit => status.is_ok(),
        LogDecision::Never => false,
    };
    if is_logged {
        warn!(
            security.reason = event.reason.as_str(),
            partner.id = event.credential.map(|held| tracing::field::display(held.partner_id)),
            credential.id = event.credential.map(|held| tracing::field::display(held.credential_id)),
            client.address = %event.address,
            failures_left = status.as_ref().map_or(0, |status| status.remaining),
            "security event"
        );
    }
    status.map(drop)
}

/// Begins a sign-in whose outcome the identity provider knows.
///
/// # Errors
/// `RATE_LIMIT_EXCEEDED` if too many of the client's address have failed or are open.
pub(crate) fn begin_attempt<'a>(
    service: &'a Service,
    request: &HttpRequest,
) -> Result<AuthAttempt<'a>, ApiError> {
    let address = client_address(request)?.accountable_ip();
    let begun = service
        .rate_limits
        .begin_attempt(address, service.clock.monotonic());
    begun.map_err(|exhausted| too_many_failures_error(exhausted, "the sign-in"))
}

/// Records wrong credentials as a security event. Returns the error of the request, with this message unless
/// too many have failed.
pub(crate) fn reject(
    service: &Service,
    request: &HttpRequest,
    reason: SecurityEventReason,
    message: impl Into<String>,
) -> ApiError {
    let address = match client_address(request) {
        Ok(address) => address.accountable_ip(),
        Err(error) => return error,
    };
    let event = SecurityEvent {
        reason,
        credential: None,
        address,
    };
    match record(service, &event) {
        Ok(()) => ApiError::new(Code::InvalidCredentials, message),
        Err(exhausted) => too_many_failures_error(exhausted, "the token"),
    }
}
