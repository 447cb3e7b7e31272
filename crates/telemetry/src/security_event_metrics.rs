//! Counter of security events by reason.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use vouchsafe_security::security_event::SecurityEventReason;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

impl From<SecurityEventReason> for ReasonLabels {
    fn from(reason: SecurityEventReason) -> Self {
        Self {
            reason: reason.as_str(),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct SecurityEventMetrics(Family<ReasonLabels, Counter>);

impl SecurityEventMetrics {
    /// Registers the counter with a zero for each reason: an alert on the first event needs the value before
    /// it.
    pub fn register(&self, registry: &mut Registry) {
        for reason in SecurityEventReason::ALL {
            drop(self.0.get_or_create(&reason.into()));
        }
        registry.register(
            "security_events",
            "Right secrets from foreign addresses and failed sign-ins of operators, including those rejected with 429",
            self.0.clone(),
        );
    }

    pub fn record(&self, reason: SecurityEventReason) {
        self.0.get_or_create(&reason.into()).inc();
    }
}
