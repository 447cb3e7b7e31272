//! Who looks for what is to be delivered? Each process, for the endpoints that it may deliver to.
//!
//! The bell says whose events were committed here a moment ago; the look finds what other processes have committed, what is
//! due again, and what nobody delivers. Rule: a process holds no more than its share of the endpoints, so that another one
//! finds work.

use std::collections::HashMap;
use std::time::Duration;

use actix_web::web;
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;
use vouchsafe_actors::domain::ids::{PartnerId, WebhookId};

use crate::service::Service;
use crate::store::DueEndpoints;

/// How often it is looked for what the bell does not tell.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Delivers for as long as the service lives. Never returns.
pub(crate) async fn run_poller(service: &web::Data<Service>) {
    let mut tick = interval(POLL_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut listening = HashMap::new();
    loop {
        tokio::select! {
            partners = service.engine.commit_notifier.notified() => wake_partners(service, &listening, &partners).await,
            _ = tick.tick() => match service.node.poll_due_endpoints().await {
                Ok(look) => {
                    service.metrics.set_endpoints(&look);
                    assign_endpoints(service, &look).await;
                    listening = look.ready_by_partner;
                }
                Err(error) => warn!(%error, "what is to be delivered cannot be read now"),
            },
        }
    }
}

/// A new endpoint is found by the next look.
async fn wake_partners(service: &Service, listening: &HashMap<PartnerId, Vec<WebhookId>>, partners: &[PartnerId]) {
    for webhook_id in partners
        .iter()
        .filter_map(|partner| listening.get(partner))
        .flatten()
    {
        service.deliveries.wake(*webhook_id).await;
    }
}

async fn assign_endpoints(service: &Service, look: &DueEndpoints) {
    service.deliveries.evict_idle();
    let share = look.enabled.div_ceil(look.nodes.max(1)).max(1);
    let leased = service.deliveries.leased();
    for surplus in leased.iter().skip(share) {
        service.deliveries.release(*surplus).await;
    }
    let mut room = share.saturating_sub(leased.len());
    for webhook_id in &look.due {
        let here = leased.contains(webhook_id);
        if here || room > 0 {
            room -= usize::from(!here);
            service.deliveries.wake(*webhook_id).await;
        }
    }
}
