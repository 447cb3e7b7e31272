//! Security events of requests: counted, limited per client address, logged, and summed up for the audit log.

use tracing::warn;
use vouchsafe_security::security_event::SecurityEvent;
use vouchsafe_security::sliding_window::Exhausted;
use vouchsafe_telemetry::security_events::LogDecision;

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
