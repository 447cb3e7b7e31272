//! Poller for due webhook endpoints.
//!
//! Commit notifications of this process wake the endpoints of the affected partners at once; the poll finds
//! events of other processes, deliveries due for retry, and endpoints without a lease. A process leases at
//! most its share of the endpoints, so that other processes get work.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;
use vouchsafe_actors::delivery::Deliveries;
use vouchsafe_actors::delivery::commit_notifier::CommitNotifier;
use vouchsafe_domain::ids::{PartnerId, WebhookId};
use vouchsafe_domain::store_error::Unavailable;
use vouchsafe_store::{EndpointRoster, PgNode};

use crate::metrics::EndpointMetrics;

/// Poll interval for work without a commit notification.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Polls per reading of all enabled endpoints: the others return due endpoints only. Bounds how long a node
/// keeps more than its share of the endpoints.
const POLLS_PER_ROSTER: u32 = 8;

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
    pub async fn run(&self) -> Infallible {
        let mut tick = interval(POLL_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut roster, mut polls) = (EndpointRoster::default(), 0_u32);
        loop {
            tokio::select! {
                partners = self.commit_notifier.notified() => self.wake_partners(&roster.ready_by_partner, &partners).await,
                _ = tick.tick() => match self.poll(&mut roster, polls).await {
                    Ok(()) => polls = (polls + 1) % POLLS_PER_ROSTER,
                    Err(error) => warn!(error.message = %error, "cannot poll due webhook deliveries"),
                },
            }
        }
    }

    async fn poll(&self, roster: &mut EndpointRoster, polls: u32) -> Result<(), Unavailable> {
        if polls == 0 {
            *roster = self.node.load_endpoint_roster().await?;
            self.metrics.set(roster);
        }
        let due = self.node.list_due_endpoints().await?;
        due.iter().for_each(|endpoint| roster.add_endpoint(*endpoint));
        let due: Vec<_> = due.into_iter().map(|endpoint| endpoint.webhook_id).collect();
        self.assign_endpoints(roster, &due).await;
        Ok(())
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

    async fn assign_endpoints(&self, roster: &EndpointRoster, due: &[WebhookId]) {
        self.deliveries.retain(&roster.enabled);
        let Assignment { release, wake } = Assignment::of(roster, due, self.deliveries.leased());
        for webhook_id in release {
            self.deliveries.release(webhook_id).await;
        }
        for webhook_id in wake {
            self.deliveries.wake(webhook_id).await;
        }
    }
}

/// What a process does with its endpoints after a poll.
#[derive(Debug, PartialEq, Eq)]
struct Assignment {
    release: Vec<WebhookId>,
    wake: Vec<WebhookId>,
}

impl Assignment {
    /// A process leases at most its share of the enabled endpoints. One that was disabled or deleted keeps
    /// its lease until its attempts have ended, and takes nothing from the share.
    fn of(roster: &EndpointRoster, due: &[WebhookId], leased: Vec<WebhookId>) -> Self {
        let share = roster.enabled.len().div_ceil(roster.nodes.max(1)).max(1);
        let (mut leased, mut release): (Vec<_>, Vec<_>) = leased
            .into_iter()
            .partition(|webhook_id| roster.enabled.contains(webhook_id));
        let mut capacity = share.saturating_sub(leased.len());
        let wake = due.iter().copied().filter(|webhook_id| {
            let is_leased = leased.contains(webhook_id);
            let is_new = !is_leased && capacity > 0;
            capacity -= usize::from(is_new);
            is_leased || is_new
        });
        let wake = wake.collect();
        release.extend(leased.drain(share.min(leased.len())..));
        Self { release, wake }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(names: std::ops::Range<u128>) -> Vec<WebhookId> {
        names
            .map(|name| format!("wh_{name:032x}").parse().unwrap())
            .collect()
    }

    fn roster(enabled: std::ops::Range<u128>, nodes: usize) -> EndpointRoster {
        EndpointRoster {
            enabled: endpoints(enabled).into_iter().collect(),
            nodes,
            ..EndpointRoster::default()
        }
    }

    #[test]
    fn deleted_endpoints_take_nothing_from_the_share() {
        // Six endpoints were deleted while their attempts are in flight; a new one is due.
        let assignment = Assignment::of(&roster(6..7, 1), &endpoints(6..7), endpoints(0..6));
        let expected = Assignment {
            release: endpoints(0..6),
            wake: endpoints(6..7),
        };
        assert_eq!(assignment, expected);
    }

    #[test]
    fn process_leases_its_share_and_releases_the_surplus() {
        let (roster, due) = (roster(0..6, 2), endpoints(0..6));
        let assignment = Assignment::of(&roster, &due, endpoints(0..2));
        assert_eq!((assignment.release, assignment.wake), (vec![], endpoints(0..3)));
        let assignment = Assignment::of(&roster, &due, endpoints(0..5));
        assert_eq!(
            (assignment.release, assignment.wake),
            (endpoints(3..5), endpoints(0..5))
        );
    }
}
