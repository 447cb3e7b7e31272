//! Where actors run: on arbiters of their own or of the listeners in the service, on the current thread in tests with paused
//! time.

use std::sync::{Arc, PoisonError, RwLock};

use actix::{Actor, Addr, ArbiterHandle, Context};
use tokio::sync::Notify;

/// Starts actors.
#[derive(Debug, Clone)]
pub enum Spawner {
    /// On the thread that asks, which must be in a `LocalSet`.
    Here,
    /// On these arbiters, by the key's hash.
    Arbiters(Arc<Arbiters>),
}

/// The threads that actors are spread over. A thread may join later, or take the place of one that has ended.
#[derive(Debug, Default)]
pub struct Arbiters {
    handles: RwLock<Vec<ArbiterHandle>>,
    joined: Notify,
}

impl Arbiters {
    /// One more; those that have ended are forgotten.
    pub fn join(&self, handle: ArbiterHandle) {
        let mut handles = self.handles.write().unwrap_or_else(PoisonError::into_inner);
        handles.retain(runs);
        handles.push(handle);
        self.joined.notify_waiters();
    }

    /// Resolves when there are so many.
    pub async fn until(&self, count: usize) {
        loop {
            let joined = self.joined.notified();
            if self.read(Vec::len) >= count {
                return;
            }
            joined.await;
        }
    }

    /// One that runs; `place` picks it.
    fn pick(&self, place: u64) -> Option<ArbiterHandle> {
        self.read(|handles| {
            let place = place.checked_rem(handles.len() as u64)?;
            let (before, from) = handles.split_at_checked(usize::try_from(place).ok()?)?;
            from.iter().chain(before).find(|handle| runs(handle)).cloned()
        })
    }

    fn read<T>(&self, look: impl FnOnce(&Vec<ArbiterHandle>) -> T) -> T {
        look(&self.handles.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl FromIterator<ArbiterHandle> for Arbiters {
    fn from_iter<I: IntoIterator<Item = ArbiterHandle>>(handles: I) -> Self {
        Self {
            handles: RwLock::new(handles.into_iter().collect()),
            joined: Notify::new(),
        }
    }
}

/// An arbiter that has ended takes nothing.
fn runs(handle: &ArbiterHandle) -> bool {
    handle.spawn_fn(|| ())
}

impl Spawner {
    /// On one arbiter.
    #[must_use]
    pub fn on(arbiter: ArbiterHandle) -> Self {
        Self::Arbiters(Arc::new([arbiter].into_iter().collect()))
    }

    /// Starts an actor; `place` picks its arbiter. Where none runs, the actor lives on the thread that asks.
    pub fn start<A>(&self, place: u64, make: impl FnOnce(&mut Context<A>) -> A + Send + 'static) -> Addr<A>
    where
        A: Actor<Context = Context<A>>,
    {
        let arbiter = match self {
            Self::Here => None,
            Self::Arbiters(arbiters) => arbiters.pick(place),
        };
        match arbiter {
            Some(arbiter) => A::start_in_arbiter(&arbiter, make),
            None => A::create(make),
        }
    }
}

#[cfg(test)]
mod tests {
    use actix::{Arbiter, System};
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn actors_are_spread_and_never_on_a_thread_that_has_ended() {
        let system = System::new();
        let (ended, first, second) = system.block_on(async {
            let arbiters = [(); 3].map(|()| Arbiter::new());
            let handles = arbiters.each_ref().map(Arbiter::handle);
            let all = Arbiters::from_iter(handles.clone());
            let [ending, ..] = arbiters;
            assert!((0..3).all(|place| all.pick(place).is_some()));
            ending.stop();
            ending.join().unwrap();
            let picked: Vec<_> = (0..3).map(|place| all.pick(place).unwrap()).collect();
            all.join(handles[1].clone());
            (
                !runs(&handles[0]) && picked.iter().all(runs),
                all.read(Vec::len),
                Arbiters::default().pick(7).is_none(),
            )
        });
        assert!(ended, "those picked run");
        assert_eq!(first, 3, "who has ended was forgotten when one joined");
        assert!(second, "there is nobody to pick");
    }

    #[tokio::test]
    async fn who_waits_for_threads_hears_of_the_last_one() {
        let arbiters = Arbiters::default();
        let waits = arbiters.until(1);
        tokio::pin!(waits);
        assert!(waits.as_mut().now_or_never().is_none());
        let joins = std::thread::scope(|scope| {
            let joined = scope.spawn(|| {
                System::new().block_on(async {
                    let arbiter = Arbiter::new();
                    arbiters.join(arbiter.handle());
                    arbiter.stop();
                    arbiter.join().unwrap();
                });
            });
            joined.join()
        });
        joins.unwrap();
        waits.await;
    }
}
