//! Counts of responses that clients did not read in time, and of connections that an address had too many of.

use super::Metrics;
use super::labels::ListenerLabels;

impl Metrics {
    /// Counts a response whose connection was reset for it.
    pub(crate) fn record_unread_response(&self) {
        self.own.unread_responses.inc();
    }

    /// Counts a connection that was closed because its client address had too many.
    pub(crate) fn record_refused_connection(&self, listener: &'static str) {
        let labels = ListenerLabels { listener };
        self.own.refused_connections.get_or_create(&labels).inc();
    }
}
