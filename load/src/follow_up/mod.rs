//! Everything that a scenario does besides the load: pauses of Postgres, restarts, replays, webhooks.

pub mod pause_recovery;
pub mod pauses;
pub mod replays;
pub mod restart;
pub mod webhook_receiver;

use serde::Serialize;

use self::pause_recovery::PauseRecovery;
use self::replays::ReplayReport;
use self::restart::RestartTimes;
use self::webhook_receiver::WebhookSummary;

/// Results of everything that a scenario does besides the load.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FollowUp {
    /// Latency recovery after pauses of Postgres.
    #[serde(rename = "aftermath")]
    pub recovery: Option<PauseRecovery>,
    /// Restart times of a killed service.
    pub restarts: Option<RestartTimes>,
    /// Replays after a restart.
    pub replayed: Option<ReplayReport>,
    /// Webhook deliveries, if partners have endpoints.
    pub delivered: Option<WebhookSummary>,
}

impl FollowUp {
    /// One text per result.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let recovery = self.recovery.as_ref().map(ToString::to_string);
        let restarts = self.restarts.as_ref().map(ToString::to_string);
        let replayed = self.replayed.as_ref().map(ToString::to_string);
        let delivered = self.delivered.as_ref().map(ToString::to_string);
        [recovery, restarts, replayed, delivered]
            .into_iter()
            .flatten()
            .collect()
    }
}
