//! Metrics of webhook endpoints and of the log of delivery attempts.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use vouchsafe_store::EndpointRoster;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DropLabels {
    reason: &'static str,
}

#[derive(Debug, Clone, Default)]
pub struct EndpointMetrics {
    log: AttemptLogMetrics,
    enabled: Gauge,
    failing: Gauge,
    gone: Gauge,
    backlog_seconds: Gauge,
}

impl EndpointMetrics {
    pub fn register(&self, registry: &mut Registry) {
        self.log.register(registry);
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
        registry.register(
            "webhook_endpoints_gone",
            "Webhook endpoints that are disabled because they responded with 410: they receive nothing \
             until they are enabled again",
            self.gone.clone(),
        );
        registry.register_with_unit(
            "webhook_backlog_age",
            "Age of the oldest event that was not attempted yet at an enabled webhook endpoint",
            Unit::Seconds,
            self.backlog_seconds.clone(),
        );
    }

    /// The metrics of the log of attempts.
    #[must_use]
    pub fn log(&self) -> AttemptLogMetrics {
        self.log.clone()
    }

    /// Updates the gauges.
    pub(crate) fn set(&self, roster: &EndpointRoster) {
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.enabled.set(gauge(roster.enabled.len()));
        self.failing.set(gauge(roster.failing));
        self.gone.set(gauge(roster.gone));
        let age = roster.backlog_age.as_secs();
        self.backlog_seconds.set(i64::try_from(age).unwrap_or(i64::MAX));
    }
}

/// Metrics of the log of attempts.
#[derive(Debug, Clone, Default)]
pub struct AttemptLogMetrics {
    logged: Counter,
    dropped: Family<DropLabels, Counter>,
}

impl AttemptLogMetrics {
    fn register(&self, registry: &mut Registry) {
        for reason in [QUEUE_FULL, WRITE_FAILED] {
            drop(self.dropped(reason));
        }
        registry.register(
            "webhook_attempts_logged",
            "Delivery attempts written to the log",
            self.logged.clone(),
        );
        registry.register(
            "webhook_attempts_not_logged",
            "Delivery attempts left out of the log, by reason",
            self.dropped.clone(),
        );
    }

    pub(crate) fn record_logged(&self, attempts: usize) {
        self.logged.inc_by(count(attempts));
    }

    pub(crate) fn record_queue_full(&self) {
        self.dropped(QUEUE_FULL).inc();
    }

    pub(crate) fn record_write_failed(&self, attempts: usize) {
        self.dropped(WRITE_FAILED).inc_by(count(attempts));
    }

    fn dropped(&self, reason: &'static str) -> Counter {
        self.dropped.get_or_create(&DropLabels { reason }).clone()
    }

    #[cfg(test)]
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        (
            self.logged.get(),
            self.dropped(QUEUE_FULL).get(),
            self.dropped(WRITE_FAILED).get(),
        )
    }
}

const QUEUE_FULL: &str = "queue_full";
const WRITE_FAILED: &str = "write_failed";

fn count(attempts: usize) -> u64 {
    u64::try_from(attempts).unwrap_or(u64::MAX)
}
