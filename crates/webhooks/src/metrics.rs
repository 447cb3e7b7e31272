//! Metrics of webhook endpoints.

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use vouchsafe_store::EndpointRoster;

#[derive(Debug, Clone, Default)]
pub struct EndpointMetrics {
    enabled: Gauge,
    failing: Gauge,
    backlog_seconds: Gauge,
}

impl EndpointMetrics {
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "webhook_endpoints",
            "Enabled webhook endpoints",
            self.enabled.clone(),
        );
        registry.register(
            "webhook_endpoints_failing",
            "Enabled webhook endpoints that fail: the oldest delivery probes them and the others wait",
            self.failing.clone(),
        );
        registry.register_with_unit(
            "webhook_backlog_age",
            "Age of the oldest undelivered event of any enabled webhook endpoint",
            Unit::Seconds,
            self.backlog_seconds.clone(),
        );
    }

    /// Updates the gauges.
    pub(crate) fn set(&self, roster: &EndpointRoster) {
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.enabled.set(gauge(roster.enabled.len()));
        self.failing.set(gauge(roster.failing));
        let age = roster.backlog_age.as_secs();
        self.backlog_seconds.set(i64::try_from(age).unwrap_or(i64::MAX));
    }
}
