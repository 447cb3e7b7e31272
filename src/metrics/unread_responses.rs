//! Count of responses that clients did not read in time.

use super::Metrics;

impl Metrics {
    /// Counts a response whose connection was reset for it.
    pub(crate) fn record_unread_response(&self) {
        self.own.unread_responses.inc();
    }
}
