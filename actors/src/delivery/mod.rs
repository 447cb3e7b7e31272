//! Deliveries: one actor an endpoint carries a partner's events to it, in order, until they are taken or their time is over.
//!
//! | part | question |
//! |---|---|
//! | `queue` | which delivery may be tried now, and what is written of it? |
//! | `schedule` | when is one tried again? |
//! | `places` | how many are under way at once? |
//! | `outbox` | the ports: what is kept, and what carries |
//! | `actor` | the shell |
//! | `bell` | whose events were committed a moment ago? |

mod actor;
pub mod bell;
mod meter;
pub mod outbox;
pub mod places;
pub mod queue;
pub mod schedule;

use std::sync::Arc;
use std::time::Duration;

use actor::DeliveryActor;
use actor::message::{Rest, Wake};

pub use actor::ATTEMPT_LIMIT;
pub use meter::DeliveryMetrics;

use self::outbox::{Outbox, Sender};
use self::places::Places;
use crate::domain::clock::Clock;
use crate::domain::ids::WebhookId;
use crate::supervisor::{ActorState, Directory, Reading, Spawner, Total};

/// How often it is looked whether all have gone to rest.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A number from 0 to 1.
pub type Chance = Arc<dyn Fn() -> f64 + Send + Sync>;

/// What every delivery actor works with.
#[derive(Clone)]
pub struct Equipment {
    /// Where events and failed deliveries are kept.
    pub outbox: Arc<dyn Outbox>,
    pub sender: Arc<dyn Sender>,
    /// The time of day, for what is shown.
    pub clock: Arc<dyn Clock>,
    /// How many are under way at once.
    pub places: Places,
    pub chance: Chance,
    pub metrics: DeliveryMetrics,
}

/// All delivery actors of a process.
pub struct Deliveries {
    actors: Directory<WebhookId, DeliveryActor>,
}

impl Deliveries {
    /// Nothing is leased yet.
    #[must_use]
    pub fn new(spawner: Spawner, equipment: Equipment) -> Self {
        let make = move |webhook_id, lineage| DeliveryActor::new(webhook_id, equipment.clone(), lineage);
        Self {
            actors: Directory::new(spawner, make),
        }
    }

    /// There may be something to deliver to this endpoint. Says whether there is room for its actor.
    pub async fn wake(&self, webhook_id: WebhookId) -> bool {
        let Some(found) = self.actors.get(&webhook_id) else {
            return false;
        };
        let _queued = found.lineage.meter.queue();
        found.addr.send(Wake { _queued }).await.is_ok()
    }

    /// Gives the endpoint back when what is under way has ended, if it is here.
    pub async fn rest(&self, webhook_id: WebhookId) {
        if let Some(found) = self.actors.find(&webhook_id) {
            let _queued = found.lineage.meter.queue();
            // One that died has nothing to give back.
            let _ = found.addr.send(Rest { _queued }).await;
        }
    }

    /// The endpoints that are leased here.
    #[must_use]
    pub fn leased(&self) -> Vec<WebhookId> {
        let ready = |(webhook_id, reading): (WebhookId, Reading)| {
            (reading.state == ActorState::Ready).then_some(webhook_id)
        };
        self.actors.readings().into_iter().filter_map(ready).collect()
    }

    /// Forgets the actors that have gone to rest.
    pub fn forget_resting(&self) {
        for (webhook_id, reading) in self.actors.readings() {
            if reading.state != ActorState::Ready {
                self.actors.retire(&webhook_id);
            }
        }
    }

    /// Gives every endpoint back, and returns when the last attempt has ended and is written down.
    pub async fn drain(&self) {
        loop {
            let leased = self.leased();
            if leased.is_empty() {
                return;
            }
            for webhook_id in leased {
                self.rest(webhook_id).await;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The counters of every delivery actor.
    pub fn readings(&self) -> Vec<(WebhookId, Reading)> {
        self.actors.readings()
    }

    /// The counters of all delivery actors together.
    pub fn total(&self) -> Total {
        self.actors.total()
    }
}
