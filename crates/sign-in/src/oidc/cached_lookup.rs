//! Cached lookup that concurrent callers share: one request at a time, and none for a while after a failure.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::time::Instant;

/// How long results are used.
#[derive(Debug, Clone, Copy)]
pub(super) struct MaxAge {
    pub(super) success: Duration,
    pub(super) failure: Duration,
    /// Age of a lookup without a result. Callers drive it: if all of them have gone, it stands still.
    pub(super) pending: Duration,
}

/// A lookup and its last result.
pub(super) struct CachedLookup<T, E> {
    max_age: MaxAge,
    current: Mutex<Option<Lookup<T, E>>>,
}

struct Lookup<T, E> {
    started_at: Instant,
    result: Shared<BoxFuture<'static, Finished<T, E>>>,
}

#[derive(Clone)]
struct Finished<T, E> {
    at: Instant,
    result: Result<T, E>,
}

impl<T, E> CachedLookup<T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Clone + Send + Sync + 'static,
{
    pub(super) const fn new(max_age: MaxAge) -> Self {
        Self {
            max_age,
            current: Mutex::new(None),
        }
    }

    /// The last result, or that of the lookup in flight, or of the one that `start` begins.
    pub(super) async fn get(&self, start: impl FnOnce() -> BoxFuture<'static, Result<T, E>>) -> Result<T, E> {
        let lookup = {
            // Held for the choice only, never while the provider is asked.
            let mut current = self.current.lock();
            match &*current {
                Some(lookup) if self.is_usable(lookup) => lookup.result.clone(),
                _ => {
                    let lookup = start().map(|result| Finished {
                        at: Instant::now(),
                        result,
                    });
                    let result = lookup.boxed().shared();
                    *current = Some(Lookup {
                        started_at: Instant::now(),
                        result: result.clone(),
                    });
                    result
                }
            }
        };
        lookup.await.result
    }

    fn is_usable(&self, lookup: &Lookup<T, E>) -> bool {
        match lookup.result.peek() {
            None => lookup.started_at.elapsed() < self.max_age.pending,
            Some(Finished { at, result: Ok(_) }) => at.elapsed() < self.max_age.success,
            Some(Finished { at, result: Err(_) }) => at.elapsed() < self.max_age.failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::oneshot;
    use tokio::time::advance;

    use super::*;

    const MAX_AGE: MaxAge = MaxAge {
        success: Duration::from_secs(60),
        failure: Duration::from_secs(5),
        pending: Duration::from_secs(10),
    };

    type TestLookup = CachedLookup<u32, String>;

    /// Returns the number of this lookup.
    async fn get(lookup: &TestLookup, started: &AtomicU32, is_ok: bool) -> Result<u32, String> {
        let number = started.load(Ordering::Relaxed) + 1;
        let start = || {
            started.fetch_add(1, Ordering::Relaxed);
            let result = is_ok.then_some(number).ok_or_else(|| format!("failure {number}"));
            std::future::ready(result).boxed()
        };
        lookup.get(start).await
    }

    #[tokio::test(start_paused = true)]
    async fn results_are_used_until_their_age() {
        let (lookup, started) = (TestLookup::new(MAX_AGE), AtomicU32::new(0));
        assert_eq!(get(&lookup, &started, false).await, Err("failure 1".to_owned()));
        advance(Duration::from_millis(4_900)).await;
        assert_eq!(get(&lookup, &started, true).await, Err("failure 1".to_owned()));
        advance(Duration::from_millis(100)).await;
        assert_eq!(get(&lookup, &started, true).await, Ok(2));
        advance(Duration::from_millis(59_900)).await;
        assert_eq!(get(&lookup, &started, false).await, Ok(2));
        advance(Duration::from_millis(100)).await;
        assert_eq!(get(&lookup, &started, true).await, Ok(3));
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_callers_share_a_lookup_that_outlives_each_of_them() {
        let (lookup, started) = (Arc::new(TestLookup::new(MAX_AGE)), AtomicU32::new(0));
        let (reply, answered) = oneshot::channel::<u32>();
        let mut first =
            Box::pin(lookup.get(|| answered.map(|answer| answer.map_err(|e| e.to_string())).boxed()));
        assert!(first.as_mut().now_or_never().is_none());
        let mut others = [(); 3].map(|()| Box::pin(get(&lookup, &started, true)));
        for other in &mut others {
            assert!(other.as_mut().now_or_never().is_none(), "it waits for the first");
        }
        drop(first);
        reply.send(7).unwrap();
        for other in others {
            assert_eq!(other.await, Ok(7));
        }
        assert_eq!(started.load(Ordering::Relaxed), 0, "one lookup for all");
    }

    #[tokio::test(start_paused = true)]
    async fn lookup_that_stands_still_is_replaced() {
        let (lookup, started) = (TestLookup::new(MAX_AGE), AtomicU32::new(0));
        assert!(
            lookup
                .get(|| std::future::pending().boxed())
                .now_or_never()
                .is_none()
        );
        advance(MAX_AGE.pending).await;
        assert_eq!(get(&lookup, &started, true).await, Ok(1));
    }
}
