//! Everything that a scenario does besides the load: pauses of Postgres, restarts, replays, webhooks.

pub mod pause_recovery;
pub mod pauses;
pub mod replays;
pub mod restart;
pub mod webhook_receiver;

use std::fmt;

use serde::Serialize;

use self::pause_recovery::PauseRecovery;
use self::replays::ReplayReport;
use self::restart::RestartTimes;
use self::webhook_receiver::WebhookSummary;

/// Results of everything that a scenario does besides the load.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FollowUp {
    pub recovery: Option<PauseRecovery>,
    pub restarts: Option<RestartTimes>,
    pub replays: Option<ReplayReport>,
    /// Webhook deliveries, if partners have endpoints.
    pub webhooks: Option<WebhookSummary>,
}

impl fmt::Display for FollowUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(recovery) = &self.recovery {
            writeln!(f, "{recovery}")?;
        }
        if let Some(restarts) = &self.restarts {
            writeln!(f, "{restarts}")?;
        }
        if let Some(replays) = &self.replays {
            writeln!(f, "{replays}")?;
        }
        match &self.webhooks {
            Some(webhooks) => writeln!(f, "{webhooks}"),
            None => Ok(()),
        }
    }
}
