//! What operators see of deliveries: attempts by how they ended, how long they took, how soon after the commit the first was.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::domain::delivery::Ending;
use crate::domain::ids::WebhookId;

/// Which attempts a figure is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    webhook: String,
    ended: &'static str,
}

/// Counters of all endpoints.
#[derive(Debug, Clone)]
pub struct DeliveryMetrics {
    attempts: Family<AttemptLabels, Counter>,
    attempt_seconds: Histogram,
    first_attempt_seconds: Histogram,
}

impl Default for DeliveryMetrics {
    fn default() -> Self {
        Self {
            attempts: Family::default(),
            attempt_seconds: Histogram::new(exponential_buckets(0.000_5, 2.0, 15)),
            first_attempt_seconds: Histogram::new(exponential_buckets(0.001, 2.0, 18)),
        }
    }
}

impl DeliveryMetrics {
    /// Shows the counters under their names.
    pub fn register(&self, registry: &mut Registry) {
        let deliveries = registry.sub_registry_with_prefix("delivery");
        deliveries.register(
            "attempts",
            "Attempts to deliver, by endpoint and how they ended",
            self.attempts.clone(),
        );
        let seconds = "Time of one attempt, from its begin to the answer's head";
        deliveries.register_with_unit("attempt", seconds, Unit::Seconds, self.attempt_seconds.clone());
        let first = "Time from an event's commit to the begin of the first attempt to deliver it";
        deliveries.register_with_unit(
            "first_attempt",
            first,
            Unit::Seconds,
            self.first_attempt_seconds.clone(),
        );
    }

    /// An attempt ended.
    pub fn ended(&self, webhook_id: WebhookId, ending: Ending, took: Duration) {
        let ended = match ending {
            Ending::Delivered => "delivered",
            Ending::Refused(_) => "failed",
            Ending::Gone => "gone",
        };
        let labels = AttemptLabels {
            webhook: webhook_id.to_string(),
            ended,
        };
        self.attempts.get_or_create(&labels).inc();
        self.attempt_seconds.observe(took.as_secs_f64());
    }

    /// The first attempt of a delivery begins so long after its event's commit.
    pub fn first_attempt(&self, after: Duration) {
        self.first_attempt_seconds.observe(after.as_secs_f64());
    }

    /// An endpoint is gone, and what was counted for it.
    pub fn forget(&self, webhook_id: WebhookId) {
        for ended in ["delivered", "failed", "gone"] {
            let webhook = webhook_id.to_string();
            self.attempts.remove(&AttemptLabels { webhook, ended });
        }
    }
}
