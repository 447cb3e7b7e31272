//! Poller for due webhook endpoints.
//!
//! Commit notifications of this process wake the endpoints of the affected partners at once; the poll finds events of
//! other processes, deliveries due for retry, and endpoints without a lease. A process leases at most its share of the
//! endpoints, so that other processes get work.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;
use vouchsafe_actors::delivery::Deliveries;
use vouchsafe_actors::delivery::commit_notifier::CommitNotifier;
use vouchsafe_domain::ids::{PartnerId, WebhookId};
use vouchsafe_store::{DueEndpoints, PgNode};

use crate::metrics::EndpointMetrics;

/// Poll interval for work without a commit notification.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Finds due endpoints and wakes their delivery actors.
pub struct Poller<'a> {
    pub node: &'a PgNode,
    pub deliveries: &'a Deliveries,
    /// Notifies of the partners with new events of this process.
    pub commit_notifier: &'a CommitNotifier,
    pub metrics: EndpointMetrics,
}

impl Poller<'_> {
    /// Runs for the lifetime of the service. Never returns.
    pub async fn run(&self) {
        let mut tick = interval(POLL_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut listening = HashMap::new();
        loop {
            tokio::select! {
                partners = self.commit_notifier.notified() => self.wake_partners(&listening, &partners).await,
                _ = tick.tick() => match self.node.poll_due_endpoints().await {
                    Ok(due) => {
                        self.metrics.set(&due);
                        self.assign_endpoints(&due).await;
                        listening = due.ready_by_partner;
                    }
                    Err(error) => warn!(error.message = %error, "cannot poll due webhook deliveries"),
                },
            }
        }
    }

    /// Wakes the known endpoints of these partners; the next poll finds new ones.
    async fn wake_partners(&self, listening: &HashMap<PartnerId, Vec<WebhookId>>, partners: &[PartnerId]) {
        for webhook_id in partners
            .iter()
            .filter_map(|partner| listening.get(partner))
            .flatten()
        {
            self.deliveries.wake(*webhook_id).await;
        }
    }

    async fn assign_endpoints(&self, due: &DueEndpoints) {
        self.deliveries.evict_idle();
        let share = due.enabled.div_ceil(due.nodes.max(1)).max(1);
        let leased = self.deliveries.leased();
        for surplus in leased.iter().skip(share) {
            self.deliveries.release(*surplus).await;
        }
        let mut capacity = share.saturating_sub(leased.len());
        for webhook_id in &due.due {
            let is_leased = leased.contains(webhook_id);
            if is_leased || capacity > 0 {
                capacity -= usize::from(!is_leased);
                self.deliveries.wake(*webhook_id).await;
            }
        }
    }
}
