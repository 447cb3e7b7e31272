//! Delivery metrics: attempts by outcome, attempt duration, delay from commit to first attempt.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use vouchsafe_domain::delivery::AttemptOutcome;

const DELIVERED: &str = "delivered";
const FAILED: &str = "failed";
const GONE: &str = "gone";

/// Labels of the attempt counter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    outcome: &'static str,
}

/// Metrics of all endpoints.
#[derive(Debug, Clone)]
pub struct DeliveryMetrics {
    attempts: Family<AttemptLabels, Counter>,
    attempt_seconds: Histogram,
    first_attempt_seconds: Histogram,
}

impl Default for DeliveryMetrics {
    fn default() -> Self {
        let attempts = Family::default();
        // From the start, so that the first increase is one.
        for outcome in [DELIVERED, FAILED, GONE] {
            drop(attempts.get_or_create(&AttemptLabels { outcome }));
        }
        Self {
            attempts,
            attempt_seconds: Histogram::new(exponential_buckets(0.000_5, 2.0, 15)),
            first_attempt_seconds: Histogram::new(exponential_buckets(0.001, 2.0, 18)),
        }
    }
}

impl DeliveryMetrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let deliveries = registry.sub_registry_with_prefix("webhook");
        deliveries.register("attempts", "Delivery attempts, by outcome", self.attempts.clone());
        let seconds = "Duration of an attempt, until the head of the response";
        deliveries.register_with_unit(
            "attempt_duration",
            seconds,
            Unit::Seconds,
            self.attempt_seconds.clone(),
        );
        let first = "Time from an event's commit to its first delivery attempt";
        deliveries.register_with_unit(
            "first_attempt_delay",
            first,
            Unit::Seconds,
            self.first_attempt_seconds.clone(),
        );
    }

    /// Records an attempt.
    pub fn record_attempt(&self, outcome: AttemptOutcome, duration: Duration) {
        let outcome = match outcome {
            AttemptOutcome::Delivered => DELIVERED,
            AttemptOutcome::Failed(_) => FAILED,
            AttemptOutcome::Gone => GONE,
        };
        self.attempts.get_or_create(&AttemptLabels { outcome }).inc();
        self.attempt_seconds.observe(duration.as_secs_f64());
    }

    /// Records the delay from an event's commit to its first attempt.
    pub fn record_first_attempt(&self, delay: Duration) {
        self.first_attempt_seconds.observe(delay.as_secs_f64());
    }
}
