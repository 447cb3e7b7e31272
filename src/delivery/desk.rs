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
use crate::store::Look;

/// How often it is looked for what the bell does not tell.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Delivers for as long as the service lives. Never returns.
pub(crate) async fn keep_delivering(service: &web::Data<Service>) {
    let mut tick = interval(LOOK_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut listening = HashMap::new();
    loop {
        tokio::select! {
            partners = service.engine.bell.heard() => ring(service, &listening, &partners).await,
            _ = tick.tick() => match service.node.look_for_deliveries().await {
                Ok(look) => {
                    service.metrics.saw_deliveries(&look);
                    wake(service, &look).await;
                    listening = look.listening;
                }
                Err(error) => warn!(%error, "what is to be delivered cannot be read now"),
            },
        }
    }
}

/// A new endpoint is found by the next look.
async fn ring(service: &Service, listening: &HashMap<PartnerId, Vec<WebhookId>>, partners: &[PartnerId]) {
    for webhook_id in partners
        .iter()
        .filter_map(|partner| listening.get(partner))
        .flatten()
    {
        service.deliveries.wake(*webhook_id).await;
    }
}

async fn wake(service: &Service, look: &Look) {
    service.deliveries.forget_resting();
    let share = look.enabled.div_ceil(look.nodes.max(1)).max(1);
    let leased = service.deliveries.leased();
    for surplus in leased.iter().skip(share) {
        service.deliveries.rest(*surplus).await;
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
