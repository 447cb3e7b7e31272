//! Long polling of orders, and of the feeds of partners.
//!
//! A waiter holds neither a lock nor a connection. A commit of this process wakes it; it polls for commits of
//! other processes. The wait ends at its timeout and when the service shuts down.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use uuid::Uuid;
use vouchsafe_domain::ids::{CredentialId, OrderId};

/// Maximum number of waiters per family: an API key and those that came from it by rotation (contract §3).
pub const MAX_WAITERS_PER_FAMILY: usize = 100;

/// Maximum number of waiters in total. Each polls twice a second; together that is a small share of the
/// database's capacity.
pub const MAX_WAITERS: usize = 1_000;

/// How often a waiter polls for commits of other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The waiters of this process.
#[derive(Debug)]
pub struct LongPollRegistry {
    topics: DashMap<Uuid, Subscribers>,
    per_family: DashMap<CredentialId, usize>,
    permits: Arc<Semaphore>,
    closed: watch::Sender<bool>,
}

/// The subscribers of one order or feed.
#[derive(Debug, Default)]
struct Subscribers {
    notify: Arc<Notify>,
    count: usize,
}

impl LongPollRegistry {
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            topics: DashMap::new(),
            per_family: DashMap::new(),
            permits: Arc::new(Semaphore::new(MAX_WAITERS)),
            closed: watch::Sender::new(false),
        })
    }

    /// Subscribes to the order or the feed of the partner with this id; `None` if a limit is reached or the
    /// service is shutting down. A subscriber of a feed polls only: no commit looks for one.
    #[must_use]
    pub fn subscribe(self: &Arc<Self>, family_id: CredentialId, topic: Uuid) -> Option<Subscription> {
        if *self.closed.borrow() {
            return None;
        }
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        self.count_subscription(family_id)?;
        Some(Subscription {
            registry: Arc::clone(self),
            family_id,
            topic,
            notify: self.notify_of(topic),
            _permit: permit,
        })
    }

    fn count_subscription(&self, family_id: CredentialId) -> Option<()> {
        let mut waiting = self.per_family.entry(family_id).or_default();
        (*waiting < MAX_WAITERS_PER_FAMILY).then(|| *waiting += 1)
    }

    fn notify_of(&self, topic: Uuid) -> Arc<Notify> {
        let mut subscribers = self.topics.entry(topic).or_default();
        subscribers.count += 1;
        Arc::clone(&subscribers.notify)
    }

    /// Wakes the subscribers of an order after a commit of this process.
    pub fn notify(&self, order_id: OrderId) {
        if let Some(subscribers) = self.topics.get(&order_id.as_uuid()) {
            subscribers.notify.notify_waiters();
        }
    }

    /// Wakes all subscribers and rejects new ones.
    pub fn close(&self) {
        self.closed.send_replace(true);
    }
}

/// A subscription to one order or feed. Dropping it ends its count in the limits.
#[derive(Debug)]
pub struct Subscription {
    registry: Arc<LongPollRegistry>,
    family_id: CredentialId,
    topic: Uuid,
    notify: Arc<Notify>,
    _permit: OwnedSemaphorePermit,
}

impl Subscription {
    /// Waits until `has_changed` returns true, `timeout` elapses, or the service shuts down.
    ///
    /// # Errors
    /// The error of `has_changed`, at once.
    pub async fn wait<E, F>(self, timeout: Duration, mut has_changed: impl FnMut() -> F) -> Result<(), E>
    where
        F: Future<Output = Result<bool, E>>,
    {
        let deadline = Instant::now() + timeout;
        let mut closed = self.registry.closed.subscribe();
        loop {
            // Subscribe before checking, so that a change in between is not missed.
            let mut notification = pin!(self.notify.notified());
            notification.as_mut().enable();
            if has_changed().await? {
                return Ok(());
            }
            tokio::select! {
                () = notification => {}
                () = tokio::time::sleep_until(deadline.min(Instant::now() + POLL_INTERVAL)) => {}
                _ = closed.wait_for(|closed| *closed) => return Ok(()),
            }
            if Instant::now() >= deadline {
                return Ok(());
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.registry.topics.remove_if_mut(&self.topic, |_, subscribers| {
            subscribers.count -= 1;
            subscribers.count == 0
        });
        self.registry
            .per_family
            .remove_if_mut(&self.family_id, |_, waiting| {
                *waiting -= 1;
                *waiting == 0
            });
    }
}

#[cfg(test)]
mod tests;
