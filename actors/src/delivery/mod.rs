//! Webhook delivery: one actor per endpoint delivers a partner's events in order, with retries.
//!
//! | module | responsibility |
//! |---|---|
//! | `queue` | which delivery may be attempted now, and what is written about it |
//! | `retry` | when a failed delivery is retried |
//! | `concurrency` | how many deliveries are in flight at once |
//! | `outbox` | ports: stored events and deliveries, the HTTP sender, the log of attempts |
//! | `actor` | the actor of one endpoint |
//! | `commit_notifier` | which partners have newly committed events |

mod actor;
pub mod commit_notifier;
pub mod concurrency;
mod metrics;
pub mod outbox;
pub mod queue;
pub mod retry;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use actor::DeliveryActor;
use actor::message::{ReleaseLease, Wake};

pub use actor::ATTEMPT_TIMEOUT;
pub use metrics::DeliveryMetrics;

use vouchsafe_domain::clock::Clock;
use vouchsafe_domain::ids::WebhookId;

use self::concurrency::ConcurrencyLimit;
use self::outbox::{AttemptLog, Outbox, Sender};
use crate::supervisor::{ActorScan, ActorState, ActorStats, ActorTotals, BusyActor, Directory, Spawner};

/// How often [`Deliveries::drain`] checks whether every endpoint was released.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Source of random numbers from 0 to 1.
pub type Jitter = Arc<dyn Fn() -> f64 + Send + Sync>;

/// Dependencies shared by all delivery actors.
#[derive(Clone)]
pub struct DeliveryContext {
    /// Stored events and deliveries.
    pub outbox: Arc<dyn Outbox>,
    pub sender: Arc<dyn Sender>,
    /// `None`: attempts are not logged.
    pub attempt_log: Option<Arc<dyn AttemptLog>>,
    /// Clock of displayed timestamps.
    pub clock: Arc<dyn Clock>,
    /// Limits the deliveries in flight.
    pub concurrency: ConcurrencyLimit,
    pub jitter: Jitter,
    pub metrics: DeliveryMetrics,
}

/// The delivery actors of a process.
pub struct Deliveries {
    actors: Directory<WebhookId, DeliveryActor>,
}

impl Deliveries {
    #[must_use]
    pub fn new(spawner: Spawner, context: DeliveryContext) -> Self {
        let factory = move |webhook_id, lineage| DeliveryActor::new(webhook_id, context.clone(), lineage);
        Self {
            actors: Directory::new(spawner, factory),
        }
    }

    /// Tells the endpoint's actor that there may be something to deliver. Returns whether there was room for
    /// the actor.
    pub async fn wake(&self, webhook_id: WebhookId) -> bool {
        let Some(actor) = self.actors.get(&webhook_id) else {
            return false;
        };
        let _queued = actor.lineage.metrics.enqueue();
        actor.addr.send(Wake { _queued }).await.is_ok()
    }

    /// Releases the endpoint's lease once its deliveries in flight have ended, if it is leased here.
    pub async fn release(&self, webhook_id: WebhookId) {
        if let Some(actor) = self.actors.find(&webhook_id) {
            let _queued = actor.lineage.metrics.enqueue();
            // An actor that died has nothing to release.
            let _ = actor.addr.send(ReleaseLease { _queued }).await;
        }
    }

    /// The endpoints leased by this process.
    #[must_use]
    pub fn leased(&self) -> Vec<WebhookId> {
        let ready = |(webhook_id, reading): (WebhookId, ActorStats)| {
            (reading.state == ActorState::Ready).then_some(webhook_id)
        };
        self.actors.stats().into_iter().filter_map(ready).collect()
    }

    /// Evicts the actors without a lease whose endpoint is disabled or deleted. The others keep their
    /// counters between two attempts.
    pub fn retain(&self, enabled: &HashSet<WebhookId>) {
        for (webhook_id, reading) in self.actors.stats() {
            if reading.state != ActorState::Ready && !enabled.contains(&webhook_id) {
                self.actors.evict(&webhook_id);
            }
        }
    }

    /// Releases every endpoint; returns when the last attempt has ended and is stored.
    pub async fn drain(&self) {
        loop {
            let leased = self.leased();
            if leased.is_empty() {
                return;
            }
            for webhook_id in leased {
                self.release(webhook_id).await;
            }
            tokio::time::sleep(DRAIN_POLL_INTERVAL).await;
        }
    }

    /// The counters of every delivery actor.
    pub fn stats(&self) -> Vec<(WebhookId, ActorStats)> {
        self.actors.stats()
    }

    /// Totals and the busiest actors; see [`Directory::scan`].
    pub fn scan(&self, limit: usize) -> ActorScan<WebhookId> {
        self.actors.scan(limit)
    }

    /// The counters of one actor; see [`Directory::describe`].
    pub fn describe(&self, key: &WebhookId) -> Option<BusyActor<WebhookId>> {
        self.actors.describe(key)
    }

    /// Totals over all delivery actors.
    pub fn totals(&self) -> ActorTotals {
        self.actors.totals()
    }
}
