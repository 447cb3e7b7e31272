//! Who waits for an order to change?
//!
//! Rule: a waiter holds neither a lock nor a connection. It is woken by a commit of this process, looks for itself for
//! what other processes committed, and waits neither past its time nor past the end of the service.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use crate::domain::ids::{CredentialId, OrderId};

/// How many may wait with one API key at once (contract §3).
pub const MAX_WAITERS_PER_KEY: usize = 100;

/// How many may wait at once in all: each looks twice a second, and together that is a small part of what the database
/// answers.
pub const MAX_WAITERS: usize = 1_000;

/// How often a waiter looks whether another process has changed its order.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The waiters of this process.
#[derive(Debug)]
pub struct Watch {
    bells: DashMap<OrderId, Bell>,
    by_key: DashMap<CredentialId, usize>,
    places: Arc<Semaphore>,
    closed: watch::Sender<bool>,
}

/// What rings when an order changes, and how many listen.
#[derive(Debug, Default)]
struct Bell {
    rings: Arc<Notify>,
    listeners: usize,
}

impl Watch {
    /// Nobody waits.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            bells: DashMap::new(),
            by_key: DashMap::new(),
            places: Arc::new(Semaphore::new(MAX_WAITERS)),
            closed: watch::Sender::new(false),
        })
    }

    /// A seat from which to wait for an order; `None` where too many wait already, and when the service is going down.
    #[must_use]
    pub fn seat(self: &Arc<Self>, credential_id: CredentialId, order_id: OrderId) -> Option<Seat> {
        if *self.closed.borrow() {
            return None;
        }
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        self.count_in(credential_id)?;
        Some(Seat {
            watch: Arc::clone(self),
            credential_id,
            order_id,
            rings: self.listen(order_id),
            _place: place,
        })
    }

    fn count_in(&self, credential_id: CredentialId) -> Option<()> {
        let mut waiting = self.by_key.entry(credential_id).or_default();
        (*waiting < MAX_WAITERS_PER_KEY).then(|| *waiting += 1)
    }

    fn listen(&self, order_id: OrderId) -> Arc<Notify> {
        let mut bell = self.bells.entry(order_id).or_default();
        bell.listeners += 1;
        Arc::clone(&bell.rings)
    }

    /// A commit of this process has changed the order: wakes those who wait for it.
    pub fn changed(&self, order_id: OrderId) {
        if let Some(bell) = self.bells.get(&order_id) {
            bell.rings.notify_waiters();
        }
    }

    /// Wakes everybody, and lets nobody wait any more.
    pub fn close(&self) {
        self.closed.send_replace(true);
    }
}

/// A place to wait for one order from; who leaves it makes room.
#[derive(Debug)]
pub struct Seat {
    watch: Arc<Watch>,
    credential_id: CredentialId,
    order_id: OrderId,
    rings: Arc<Notify>,
    _place: OwnedSemaphorePermit,
}

impl Seat {
    /// Waits until `changed` says so, until `patience` is over, or until the service goes down.
    ///
    /// # Errors
    /// That of `changed`, at once.
    pub async fn wait<E, F>(self, patience: Duration, mut changed: impl FnMut() -> F) -> Result<(), E>
    where
        F: Future<Output = Result<bool, E>>,
    {
        let deadline = Instant::now() + patience;
        let mut closed = self.watch.closed.subscribe();
        loop {
            // Listens before it looks, so that no change falls between.
            let mut rung = pin!(self.rings.notified());
            rung.as_mut().enable();
            if changed().await? {
                return Ok(());
            }
            tokio::select! {
                () = rung => {}
                () = tokio::time::sleep_until(deadline.min(Instant::now() + LOOK_EVERY)) => {}
                _ = closed.wait_for(|closed| *closed) => return Ok(()),
            }
            if Instant::now() >= deadline {
                return Ok(());
            }
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.watch.bells.remove_if_mut(&self.order_id, |_, bell| {
            bell.listeners -= 1;
            bell.listeners == 0
        });
        self.watch
            .by_key
            .remove_if_mut(&self.credential_id, |_, waiting| {
                *waiting -= 1;
                *waiting == 0
            });
    }
}

#[cfg(test)]
mod tests;
