//! Long polling of an order's status.
//!
//! A waiter holds neither a lock nor a connection. A commit of this process wakes it; it polls for commits of other
//! processes. The wait ends at its timeout and when the service shuts down.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use vouchsafe_domain::ids::{CredentialId, OrderId};

/// Maximum number of waiters per family: an API key and those that came from it by rotation (contract §3).
pub const MAX_WAITERS_PER_FAMILY: usize = 100;

/// Maximum number of waiters in total. Each polls twice a second; together that is a small share of the database's
/// capacity.
pub const MAX_WAITERS: usize = 1_000;

/// How often a waiter polls for commits of other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The waiters of this process.
#[derive(Debug)]
pub struct LongPollRegistry {
    orders: DashMap<OrderId, OrderSubscribers>,
    per_family: DashMap<CredentialId, usize>,
    permits: Arc<Semaphore>,
    closed: watch::Sender<bool>,
}

/// The subscribers of one order.
#[derive(Debug, Default)]
struct OrderSubscribers {
    notify: Arc<Notify>,
    subscribers: usize,
}

impl LongPollRegistry {
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            orders: DashMap::new(),
            per_family: DashMap::new(),
            permits: Arc::new(Semaphore::new(MAX_WAITERS)),
            closed: watch::Sender::new(false),
        })
    }

    /// Subscribes to an order; `None` if a limit is reached or the service is shutting down.
    #[must_use]
    pub fn subscribe(self: &Arc<Self>, family_id: CredentialId, order_id: OrderId) -> Option<Subscription> {
        if *self.closed.borrow() {
            return None;
        }
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        self.count_subscription(family_id)?;
        Some(Subscription {
            registry: Arc::clone(self),
            family_id,
            order_id,
            notify: self.order_notify(order_id),
            _permit: permit,
        })
    }

    fn count_subscription(&self, family_id: CredentialId) -> Option<()> {
        let mut waiting = self.per_family.entry(family_id).or_default();
        (*waiting < MAX_WAITERS_PER_FAMILY).then(|| *waiting += 1)
    }

    fn order_notify(&self, order_id: OrderId) -> Arc<Notify> {
        let mut order_subscribers = self.orders.entry(order_id).or_default();
        order_subscribers.subscribers += 1;
        Arc::clone(&order_subscribers.notify)
    }

    /// Wakes the subscribers of an order after a commit of this process.
    pub fn notify(&self, order_id: OrderId) {
        if let Some(order_subscribers) = self.orders.get(&order_id) {
            order_subscribers.notify.notify_waiters();
        }
    }

    /// Wakes all subscribers and rejects new ones.
    pub fn close(&self) {
        self.closed.send_replace(true);
    }
}

/// A subscription to one order. Dropping it ends its count in the limits.
#[derive(Debug)]
pub struct Subscription {
    registry: Arc<LongPollRegistry>,
    family_id: CredentialId,
    order_id: OrderId,
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
        self.registry
            .orders
            .remove_if_mut(&self.order_id, |_, order_subscribers| {
                order_subscribers.subscribers -= 1;
                order_subscribers.subscribers == 0
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
