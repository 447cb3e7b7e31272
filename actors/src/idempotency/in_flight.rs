//! Deduplication of concurrent requests with one idempotency key: the first request runs, the others wait for
//! its response.
//!
//! The entry belongs to the record, not to the request. The owner of the [`KeyGuard`] must resolve the key;
//! dropping the guard releases the key, and a waiter then runs the request itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use vouchsafe_domain::clock::Clock;
use vouchsafe_domain::idempotency::{KeyHash, StoredResponse};

use super::response_cache::ResponseCache;

/// Maximum number of waiters over all keys: four times the records that may be in flight. Waiters are not
/// admitted, so this limit bounds them; beyond it a duplicate gets at once the response that it would get
/// after its wait.
const MAX_WAITING: usize = 4_096;

/// How the first request with a key ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyOutcome {
    /// It stored a response.
    Stored(StoredResponse),
    /// It stored nothing; the key is free.
    Released,
}

/// The state of a key when a request arrives.
#[derive(Debug)]
pub enum KeyStatus {
    /// The key is free: this request runs.
    First(KeyGuard),
    /// Another request is running.
    InFlight(Waiter),
    /// Another request is running, and too many requests wait.
    TooManyWaiters,
    /// The response is cached.
    Known(StoredResponse),
}

/// The idempotency keys that this process is handling or has handled recently.
pub struct IdempotencyKeys {
    in_flight: DashMap<KeyHash, watch::Receiver<Option<KeyOutcome>>>,
    responses: ResponseCache,
    /// How often the responses were dropped.
    drops: AtomicU64,
    waiter_permits: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for IdempotencyKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdempotencyKeys")
            .field("in_flight", &self.in_flight.len())
            .finish_non_exhaustive()
    }
}

impl IdempotencyKeys {
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            in_flight: DashMap::new(),
            responses: ResponseCache::new(),
            drops: AtomicU64::new(0),
            waiter_permits: Arc::new(Semaphore::new(MAX_WAITING)),
            clock,
        })
    }

    /// Registers a request with `key`: it runs, waits, or gets the cached response.
    pub fn begin(self: &Arc<Self>, key: KeyHash) -> KeyStatus {
        let guard = match self.in_flight.entry(key) {
            Entry::Occupied(entry) => {
                return match Arc::clone(&self.waiter_permits).try_acquire_owned() {
                    Ok(permit) => KeyStatus::InFlight(Waiter {
                        outcome: entry.get().clone(),
                        _permit: permit,
                    }),
                    Err(_) => KeyStatus::TooManyWaiters,
                };
            }
            Entry::Vacant(entry) => {
                let (outcome, receiver) = watch::channel(None);
                entry.insert(receiver);
                KeyGuard {
                    key,
                    keys: Arc::clone(self),
                    outcome,
                    started_at: self.clock.monotonic(),
                    drops: self.drops.load(Ordering::SeqCst),
                }
            }
        };
        // Read the cache after inserting the entry: a response is cached before its entry is removed, so none
        // is missed in between.
        match self.responses.get(key, guard.started_at) {
            Some(stored) => KeyStatus::Known(stored),
            None => KeyStatus::First(guard),
        }
    }

    /// Drops the cached responses, and those of the keys in flight once they are stored: the store may have
    /// lost them.
    pub fn drop_responses(&self) {
        self.drops.fetch_add(1, Ordering::SeqCst);
        self.responses.clear();
    }

    /// The number of keys in flight.
    #[must_use]
    pub fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }
}

/// Waits for the first request with the same key.
#[derive(Debug)]
pub struct Waiter {
    outcome: watch::Receiver<Option<KeyOutcome>>,
    _permit: OwnedSemaphorePermit,
}

impl Waiter {
    /// Resolves when the first request has ended.
    pub async fn outcome(mut self) -> KeyOutcome {
        let outcome = self.outcome.wait_for(Option::is_some).await;
        outcome
            .ok()
            .and_then(|outcome| outcome.clone())
            .unwrap_or(KeyOutcome::Released)
    }
}

/// Exclusive ownership of a key; its owner must resolve the key.
pub struct KeyGuard {
    key: KeyHash,
    keys: Arc<IdempotencyKeys>,
    outcome: watch::Sender<Option<KeyOutcome>>,
    started_at: Duration,
    /// How often the responses had been dropped at the start.
    drops: u64,
}

impl std::fmt::Debug for KeyGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyGuard({:?})", self.key)
    }
}

impl KeyGuard {
    #[must_use]
    pub const fn key(&self) -> KeyHash {
        self.key
    }

    /// Resolves the key with a newly committed response and caches it.
    pub fn store(self, stored: StoredResponse) {
        let keys = &self.keys;
        if keys.drops.load(Ordering::SeqCst) == self.drops {
            keys.responses.insert(self.key, stored.clone(), self.started_at);
            if keys.drops.load(Ordering::SeqCst) != self.drops {
                // Dropped meanwhile, possibly before this response was there.
                keys.responses.clear();
            }
        }
        self.resolve(stored);
    }

    /// Resolves the key with a response that was stored before. It is not cached: its 24 h began with its own
    /// commit, at an unknown time.
    pub fn resolve(self, stored: StoredResponse) {
        self.outcome.send_replace(Some(KeyOutcome::Stored(stored)));
    }
}

impl Drop for KeyGuard {
    fn drop(&mut self) {
        self.keys.in_flight.remove(&self.key);
        self.outcome.send_if_modified(|outcome| {
            let is_open = outcome.is_none();
            outcome.get_or_insert(KeyOutcome::Released);
            is_open
        });
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use uuid::Uuid;
    use vouchsafe_domain::clock::SystemClock;
    use vouchsafe_domain::idempotency::{Fingerprint, Response};

    use super::*;

    const KEY: KeyHash = KeyHash(Uuid::from_u128(7));

    fn keys() -> Arc<IdempotencyKeys> {
        IdempotencyKeys::new(Arc::new(SystemClock::new()))
    }

    fn stored() -> StoredResponse {
        StoredResponse {
            fingerprint: Fingerprint([1; 32]),
            response: Response {
                status: 201,
                body: Bytes::from_static(b"{}"),
            },
        }
    }

    fn first(keys: &Arc<IdempotencyKeys>) -> KeyGuard {
        match keys.begin(KEY) {
            KeyStatus::First(guard) => guard,
            other => panic!("{other:?}"),
        }
    }

    fn waiter(keys: &Arc<IdempotencyKeys>) -> Waiter {
        match keys.begin(KEY) {
            KeyStatus::InFlight(waiter) => waiter,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn waiters_and_later_requests_get_the_first_response() {
        let keys = keys();
        let guard = first(&keys);
        let waiters = [waiter(&keys), waiter(&keys)];
        guard.store(stored());
        for waiter in waiters {
            assert_eq!(waiter.outcome().await, KeyOutcome::Stored(stored()));
        }
        assert!(matches!(keys.begin(KEY), KeyStatus::Known(response) if response == stored()));
        assert_eq!(keys.in_flight_count(), 0);
    }

    #[tokio::test]
    async fn response_begun_before_a_drop_is_not_cached() {
        let keys = keys();
        first(&keys).store(stored());
        keys.drop_responses();
        let guard = first(&keys);
        keys.drop_responses();
        guard.store(stored());
        first(&keys);
    }

    #[tokio::test]
    async fn stored_response_reaches_waiters_and_is_not_cached() {
        let keys = keys();
        let guard = first(&keys);
        let waiter = waiter(&keys);
        guard.resolve(stored());
        assert_eq!(waiter.outcome().await, KeyOutcome::Stored(stored()));
        first(&keys);
    }

    #[test]
    fn waiters_beyond_the_limit_are_rejected() {
        let keys = keys();
        let guard = first(&keys);
        let mut waiters: Vec<_> = (0..MAX_WAITING).map(|_| waiter(&keys)).collect();
        assert!(matches!(keys.begin(KEY), KeyStatus::TooManyWaiters));
        waiters.pop();
        assert!(matches!(keys.begin(KEY), KeyStatus::InFlight(_)));
        drop(guard);
    }

    #[tokio::test]
    async fn waiter_may_run_after_key_is_released() {
        let keys = keys();
        let guard = first(&keys);
        let waiter = waiter(&keys);
        drop(guard);
        assert_eq!(waiter.outcome().await, KeyOutcome::Released);
        first(&keys);
    }

    #[tokio::test]
    async fn waiter_waits_while_the_record_is_open() {
        let keys = keys();
        let guard = first(&keys);
        let mut outcome = Box::pin(waiter(&keys).outcome());
        tokio::select! {
            biased;
            _ = &mut outcome => panic!("the wait ended before the record"),
            () = std::future::ready(()) => {}
        }
        drop(guard);
        assert_eq!(outcome.await, KeyOutcome::Released);
    }
}
