//! Everything that a scenario does besides the load: pauses of Postgres, restarts, replays, webhooks,
//! consoles.

pub mod consoles;
pub(crate) mod idle_actors;
pub mod pause_recovery;
pub mod pauses;
pub mod replays;
pub mod restart;
pub mod webhook_receiver;

use std::fmt;

use serde::Serialize;

use self::consoles::ConsoleTally;
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
    /// What the open consoles received, if there are any.
    pub consoles: Option<ConsoleTally>,
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
        if let Some(webhooks) = &self.webhooks {
            writeln!(f, "{webhooks}")?;
        }
        match &self.consoles {
            Some(consoles) => writeln!(f, "{consoles}"),
            None => Ok(()),
        }
    }
}
