//! Keys that are being answered: the first request runs, the others wait for its answer.
//!
//! Rule: the entry belongs to the record, not to the request. Whoever holds the [`KeyGuard`] owes the waiters an end;
//! dropping it says "nothing was kept", and then a waiter runs itself.

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::answers::Answers;
use crate::domain::answer::{KeyHash, KnownAnswer};
use crate::domain::clock::Clock;

/// How many requests may wait for the first one of their key at once, over all keys: as many as may be under way. They
/// are not admitted while they wait, so this bounds them; beyond it a duplicate hears at once what it would hear after
/// its wait.
const MAX_WAITING: usize = 4_096;

/// How the request that came first ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// With an answer that is kept.
    Kept(KnownAnswer),
    /// Without one; the key is free.
    Unkept,
}

/// What a request finds when it comes with a key.
#[derive(Debug)]
pub enum Begun {
    /// Nobody is at it: this request runs.
    First(KeyGuard),
    /// Another request runs; it will end.
    Running(Waiter),
    /// Another request runs, and too many wait already.
    Crowded,
    /// It was answered lately.
    Known(KnownAnswer),
}

/// The keys of this process.
pub struct Keys {
    running: DashMap<KeyHash, watch::Receiver<Option<Ended>>>,
    answers: Answers,
    waiting: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys")
            .field("running", &self.running.len())
            .finish_non_exhaustive()
    }
}

impl Keys {
    /// No key is known.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            running: DashMap::new(),
            answers: Answers::new(),
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
            clock,
        })
    }

    /// A request with `key` has come: says whether it is to run, to wait, or what it was answered.
    pub fn begin(self: &Arc<Self>, key: KeyHash) -> Begun {
        let guard = match self.running.entry(key) {
            Entry::Occupied(entry) => {
                return match Arc::clone(&self.waiting).try_acquire_owned() {
                    Ok(place) => Begun::Running(Waiter {
                        ended: entry.get().clone(),
                        _place: place,
                    }),
                    Err(_) => Begun::Crowded,
                };
            }
            Entry::Vacant(entry) => {
                let (ended, receiver) = watch::channel(None);
                entry.insert(receiver);
                KeyGuard {
                    key,
                    keys: Arc::clone(self),
                    ended,
                    since: self.clock.monotonic(),
                }
            }
        };
        // Looked up after the entry stands: an answer is remembered before its entry goes, so none slips through between.
        match self.answers.get(key, guard.since) {
            Some(known) => Begun::Known(known),
            None => Begun::First(guard),
        }
    }

    /// How many keys are being answered.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.len()
    }
}

/// Waits for the request that came first.
#[derive(Debug)]
pub struct Waiter {
    ended: watch::Receiver<Option<Ended>>,
    _place: OwnedSemaphorePermit,
}

impl Waiter {
    /// How the first request ended.
    pub async fn ended(mut self) -> Ended {
        let ended = self.ended.wait_for(Option::is_some).await;
        ended
            .ok()
            .and_then(|ended| ended.clone())
            .unwrap_or(Ended::Unkept)
    }
}

/// The right and the duty to answer a key.
pub struct KeyGuard {
    key: KeyHash,
    keys: Arc<Keys>,
    ended: watch::Sender<Option<Ended>>,
    since: Duration,
}

impl std::fmt::Debug for KeyGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyGuard({:?})", self.key)
    }
}

impl KeyGuard {
    /// The key.
    #[must_use]
    pub const fn key(&self) -> KeyHash {
        self.key
    }

    /// An answer became durable under the key: whoever waits gets it, and whoever comes later.
    pub fn keep(self, known: KnownAnswer) {
        self.keys.answers.insert(self.key, known.clone(), self.since);
        self.found(known);
    }

    /// An answer was durable under the key before: whoever waits gets it. It is not remembered, since its 24 h began
    /// with its own commit, and nobody here knows when that was.
    pub fn found(self, known: KnownAnswer) {
        self.ended.send_replace(Some(Ended::Kept(known)));
    }
}

impl Drop for KeyGuard {
    fn drop(&mut self) {
        self.keys.running.remove(&self.key);
        self.ended.send_if_modified(|ended| {
            let open = ended.is_none();
            ended.get_or_insert(Ended::Unkept);
            open
        });
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use uuid::Uuid;

    use super::*;
    use crate::domain::answer::{Answer, Fingerprint};
    use crate::domain::clock::SystemClock;

    const KEY: KeyHash = KeyHash(Uuid::from_u128(7));

    fn keys() -> Arc<Keys> {
        Keys::new(Arc::new(SystemClock::new()))
    }

    fn known() -> KnownAnswer {
        KnownAnswer {
            fingerprint: Fingerprint([1; 32]),
            answer: Answer {
                status: 201,
                body: Bytes::from_static(b"{}"),
            },
        }
    }

    fn first(keys: &Arc<Keys>) -> KeyGuard {
        match keys.begin(KEY) {
            Begun::First(guard) => guard,
            other => panic!("{other:?}"),
        }
    }

    fn waiter(keys: &Arc<Keys>) -> Waiter {
        match keys.begin(KEY) {
            Begun::Running(waiter) => waiter,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn waiters_get_the_first_ones_answer_and_later_requests_too() {
        let keys = keys();
        let guard = first(&keys);
        let waiters = [waiter(&keys), waiter(&keys)];
        guard.keep(known());
        for waiter in waiters {
            assert_eq!(waiter.ended().await, Ended::Kept(known()));
        }
        assert!(matches!(keys.begin(KEY), Begun::Known(answer) if answer == known()));
        assert_eq!(keys.running(), 0);
    }

    #[tokio::test]
    async fn what_was_found_is_told_to_those_who_wait_and_not_remembered() {
        let keys = keys();
        let guard = first(&keys);
        let waiter = waiter(&keys);
        guard.found(known());
        assert_eq!(waiter.ended().await, Ended::Kept(known()));
        first(&keys);
    }

    #[test]
    fn no_more_wait_than_there_is_room_for() {
        let keys = keys();
        let guard = first(&keys);
        let mut waiters: Vec<_> = (0..MAX_WAITING).map(|_| waiter(&keys)).collect();
        assert!(matches!(keys.begin(KEY), Begun::Crowded));
        waiters.pop();
        assert!(matches!(keys.begin(KEY), Begun::Running(_)));
        drop(guard);
    }

    #[tokio::test]
    async fn a_waiter_whose_first_kept_nothing_may_run_itself() {
        let keys = keys();
        let guard = first(&keys);
        let waiter = waiter(&keys);
        drop(guard);
        assert_eq!(waiter.ended().await, Ended::Unkept);
        first(&keys);
    }

    #[tokio::test]
    async fn a_waiter_waits_while_the_record_is_open() {
        let keys = keys();
        let guard = first(&keys);
        let mut ended = Box::pin(waiter(&keys).ended());
        tokio::select! {
            biased;
            _ = &mut ended => panic!("it ended before its record"),
            () = std::future::ready(()) => {}
        }
        drop(guard);
        assert_eq!(ended.await, Ended::Unkept);
    }
}
