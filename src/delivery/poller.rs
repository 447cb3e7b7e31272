//! Poller for due webhook endpoints.
//!
//! Commit notifications of this process wake the endpoints of the affected partners at once; the poll finds events of
//! other processes, deliveries due for retry, and endpoints without a lease. A process leases at most its share of the
//! endpoints, so that other processes get work.

use std::collections::HashMap;
use std::time::Duration;

use actix_web::web;
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;
use vouchsafe_domain::ids::{PartnerId, WebhookId};

use crate::service::Service;
use crate::store::DueEndpoints;

/// Poll interval for work without a commit notification.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Runs for the lifetime of the service. Never returns.
pub(crate) async fn run_poller(service: &web::Data<Service>) {
    let mut tick = interval(POLL_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut listening = HashMap::new();
    loop {
        tokio::select! {
            partners = service.engine.commit_notifier.notified() => wake_partners(service, &listening, &partners).await,
            _ = tick.tick() => match service.node.poll_due_endpoints().await {
                Ok(due) => {
                    service.metrics.set_endpoints(&due);
                    assign_endpoints(service, &due).await;
                    listening = due.ready_by_partner;
                }
                Err(error) => warn!(error.message = %error, "cannot poll due webhook deliveries"),
            },
        }
    }
}

/// Wakes the known endpoints of these partners; the next poll finds new ones.
async fn wake_partners(
    service: &Service,
    listening: &HashMap<PartnerId, Vec<WebhookId>>,
    partners: &[PartnerId],
) {
    for webhook_id in partners
        .iter()
        .filter_map(|partner| listening.get(partner))
        .flatten()
    {
        service.deliveries.wake(*webhook_id).await;
    }
}

async fn assign_endpoints(service: &Service, due: &DueEndpoints) {
    service.deliveries.evict_idle();
    let share = due.enabled.div_ceil(due.nodes.max(1)).max(1);
    let leased = service.deliveries.leased();
    for surplus in leased.iter().skip(share) {
        service.deliveries.release(*surplus).await;
    }
    let mut capacity = share.saturating_sub(leased.len());
    for webhook_id in &due.due {
        let is_leased = leased.contains(webhook_id);
        if is_leased || capacity > 0 {
            capacity -= usize::from(!is_leased);
            service.deliveries.wake(*webhook_id).await;
        }
    }
}
