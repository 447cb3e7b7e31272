//! Placement of actors on threads: on arbiters in the service, on the current thread in tests with paused
//! time.

use std::sync::Arc;

use actix::{Actor, Addr, ArbiterHandle, Context};
use parking_lot::RwLock;
use tokio::sync::Notify;

/// Starts actors.
#[derive(Debug, Clone)]
pub enum Spawner {
    /// Actors run on the calling thread, which must run a `LocalSet`.
    CurrentThread,
    /// The hash of an actor's key selects its arbiter.
    Arbiters(Arc<Arbiters>),
}

/// The threads that actors are distributed over. Threads may be added later, also to replace those that have
/// ended.
#[derive(Debug, Default)]
pub struct Arbiters {
    handles: RwLock<Vec<ArbiterHandle>>,
    added: Notify,
}

impl Arbiters {
    /// Adds an arbiter and removes those that have ended.
    pub fn add(&self, handle: ArbiterHandle) {
        let mut handles = self.handles.write();
        handles.retain(is_running);
        handles.push(handle);
        self.added.notify_waiters();
    }

    /// Waits until there are `count` arbiters.
    pub async fn wait_for(&self, count: usize) {
        loop {
            let joined = self.added.notified();
            if self.with_handles(Vec::len) >= count {
                return;
            }
            joined.await;
        }
    }

    /// Picks a running arbiter by `hash`.
    fn pick(&self, hash: u64) -> Option<ArbiterHandle> {
        self.with_handles(|handles| {
            let index = hash.checked_rem(handles.len() as u64)?;
            let (before, from) = handles.split_at_checked(usize::try_from(index).ok()?)?;
            from.iter()
                .chain(before)
                .find(|handle| is_running(handle))
                .cloned()
        })
    }

    fn with_handles<T>(&self, read: impl FnOnce(&Vec<ArbiterHandle>) -> T) -> T {
        read(&self.handles.read())
    }
}

impl FromIterator<ArbiterHandle> for Arbiters {
    fn from_iter<I: IntoIterator<Item = ArbiterHandle>>(handles: I) -> Self {
        Self {
            handles: RwLock::new(handles.into_iter().collect()),
            added: Notify::new(),
        }
    }
}

/// An arbiter that has ended accepts no function.
fn is_running(handle: &ArbiterHandle) -> bool {
    handle.spawn_fn(|| ())
}

impl Spawner {
    /// Places all actors on one arbiter.
    #[must_use]
    pub fn on_arbiter(arbiter: ArbiterHandle) -> Self {
        Self::Arbiters(Arc::new([arbiter].into_iter().collect()))
    }

    /// Starts an actor on the arbiter picked by `hash`, or on the calling thread if no arbiter is running.
    pub fn start<A>(&self, hash: u64, factory: impl FnOnce(&mut Context<A>) -> A + Send + 'static) -> Addr<A>
    where
        A: Actor<Context = Context<A>>,
    {
        let arbiter = match self {
            Self::CurrentThread => None,
            Self::Arbiters(arbiters) => arbiters.pick(hash),
        };
        match arbiter {
            Some(arbiter) => A::start_in_arbiter(&arbiter, factory),
            None => A::create(factory),
        }
    }
}

#[cfg(test)]
mod tests {
    use actix::{Arbiter, System};
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn actors_are_placed_on_running_arbiters_only() {
        let system = System::new();
        let (ended, first, second) = system.block_on(async {
            let arbiters = [(); 3].map(|()| Arbiter::new());
            let handles = arbiters.each_ref().map(Arbiter::handle);
            let all = Arbiters::from_iter(handles.clone());
            let [ending, ..] = arbiters;
            assert!((0..3).all(|hash| all.pick(hash).is_some()));
            ending.stop();
            ending.join().unwrap();
            let picked: Vec<_> = (0..3).map(|hash| all.pick(hash).unwrap()).collect();
            all.add(handles[1].clone());
            (
                !is_running(&handles[0]) && picked.iter().all(is_running),
                all.with_handles(Vec::len),
                Arbiters::default().pick(7).is_none(),
            )
        });
        assert!(ended, "an ended arbiter was picked");
        assert_eq!(first, 3, "adding an arbiter removes the ended one");
        assert!(second, "nothing was picked without arbiters");
    }

    #[tokio::test]
    async fn wait_for_resolves_when_the_last_arbiter_is_added() {
        let arbiters = Arbiters::default();
        let waiting = arbiters.wait_for(1);
        tokio::pin!(waiting);
        assert!(waiting.as_mut().now_or_never().is_none());
        let added = std::thread::scope(|scope| {
            let joined = scope.spawn(|| {
                System::new().block_on(async {
                    let arbiter = Arbiter::new();
                    arbiters.add(arbiter.handle());
                    arbiter.stop();
                    arbiter.join().unwrap();
                });
            });
            joined.join()
        });
        added.unwrap();
        waiting.await;
    }
}
