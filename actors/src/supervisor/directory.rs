//! Finds the actor of a key, starts it when there is none, and rebuilds it when it has died.
//!
//! Actix restarts nothing after a panic, and keeps the old state where it restarts at all. So supervision is ours: who
//! asks for a dead actor gets a new one, which loads its state from the store. Rule: no reference into the map is held
//! across an await, and never two at once.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::Arc;

use actix::{Actor, Addr, Context};
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tracing::error;

use super::holds::OpenHolds;
use super::meter::{ActorMeter, ActorState, Reading};
use super::spawner::Spawner;

/// Most actors of one kind that live at once: at some 4 KiB each, 400 MiB. Where more keys are asked for, actors that
/// nobody has anything with are forgotten; they come back from the store when they are asked again.
const MAX_ACTORS: usize = 100_000;

/// What an actor shares with the incarnations before and after it.
#[derive(Debug, Clone, Default)]
pub struct Lineage {
    /// Its counters.
    pub meter: Arc<ActorMeter>,
    /// The holds that are open on its state.
    pub holds: Arc<OpenHolds>,
}

/// A live actor.
pub struct Found<A: Actor> {
    /// Where to send.
    pub addr: Addr<A>,
    /// What its messages are counted by.
    pub lineage: Lineage,
}

impl<A: Actor> std::fmt::Debug for Found<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Found")
    }
}

impl<A: Actor> Clone for Found<A> {
    fn clone(&self) -> Self {
        Self {
            addr: self.addr.clone(),
            lineage: self.lineage.clone(),
        }
    }
}

type Make<K, A> = dyn Fn(K, Lineage) -> A + Send + Sync;

/// The actors of one kind, by key.
pub struct Directory<K, A: Actor> {
    actors: DashMap<K, Found<A>>,
    spawner: Spawner,
    make: Arc<Make<K, A>>,
    limit: usize,
}

impl<K, A> Directory<K, A>
where
    K: Eq + Hash + Clone + std::fmt::Debug + Send + 'static,
    A: Actor<Context = Context<A>>,
{
    /// No actor lives yet; `make` builds one that has yet to load its state.
    pub fn new(spawner: Spawner, make: impl Fn(K, Lineage) -> A + Send + Sync + 'static) -> Self {
        Self {
            actors: DashMap::new(),
            spawner,
            make: Arc::new(make),
            limit: MAX_ACTORS,
        }
    }

    /// The live actor of `key`; `None` when there is no room for another, since every one that lives is at something.
    pub fn get(&self, key: &K) -> Option<Found<A>> {
        if let Some(found) = self.find(key) {
            return Some(found);
        }
        if self.actors.len() >= self.limit && !self.make_room() && !self.actors.contains_key(key) {
            return None;
        }
        Some(self.get_or_start(key))
    }

    fn get_or_start(&self, key: &K) -> Found<A> {
        match self.actors.entry(key.clone()) {
            // Somebody else may have been faster.
            Entry::Occupied(entry) if entry.get().addr.connected() => entry.get().clone(),
            Entry::Occupied(mut entry) => {
                let lineage = entry.get().lineage.clone();
                lineage.meter.restarted();
                error!(actor.key = ?key, "an actor died and is rebuilt from the store");
                let found = self.start(key, lineage);
                entry.insert(found.clone());
                found
            }
            Entry::Vacant(entry) => entry.insert(self.start(key, Lineage::default())).clone(),
        }
    }

    /// Forgets the actors that nobody has anything with: no hold, no message, no address. Says whether there is room.
    ///
    /// Besides the directory only the actor itself knows its lineage then, and nobody can come to know it meanwhile, since
    /// its part of the map is locked. Its last address goes, and with it the actor.
    fn make_room(&self) -> bool {
        self.actors
            .retain(|_, found| Arc::strong_count(&found.lineage.holds) > 2);
        self.actors.len() < self.limit
    }

    /// The live actor of `key`, if there is one.
    pub fn find(&self, key: &K) -> Option<Found<A>> {
        self.actors
            .get(key)
            .filter(|found| found.addr.connected())
            .map(|found| found.clone())
    }

    /// The counters of every actor.
    pub fn readings(&self) -> Vec<(K, Reading)> {
        let read = |found: &Found<A>| {
            let reading = found.lineage.meter.reading();
            if found.addr.connected() {
                reading
            } else {
                Reading {
                    state: ActorState::Ended,
                    ..reading
                }
            }
        };
        self.actors
            .iter()
            .map(|entry| (entry.key().clone(), read(entry.value())))
            .collect()
    }

    fn start(&self, key: &K, lineage: Lineage) -> Found<A> {
        let place = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let (make, owned_key, owned) = (Arc::clone(&self.make), key.clone(), lineage.clone());
        let addr = self.spawner.start(place, move |_| make(owned_key, owned));
        Found { addr, lineage }
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::LocalSet;

    use super::*;

    struct Idle {
        _lineage: Lineage,
    }

    impl Actor for Idle {
        type Context = Context<Self>;
    }

    fn directory(limit: usize) -> Directory<u32, Idle> {
        let directory = Directory::new(Spawner::Here, |_, lineage| Idle { _lineage: lineage });
        Directory { limit, ..directory }
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_at_nothing_makes_room_and_who_holds_something_stays() {
        let test = async {
            let directory = directory(2);
            let held = directory.get(&1).unwrap().lineage.holds.begin();
            drop(directory.get(&2));
            assert!(directory.get(&3).is_some(), "the second was at nothing");
            assert!(directory.find(&1).is_some() && directory.find(&2).is_none());
            let also_held = directory.get(&3).unwrap().lineage.holds.begin();
            assert!(directory.get(&4).is_none(), "both are at something");
            assert!(directory.get(&1).is_some(), "who is there is found all the same");
            drop((held, also_held));
            assert!(directory.get(&4).is_some());
            assert_eq!(directory.readings().len(), 1);
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test(start_paused = true)]
    async fn at_full_size_the_next_key_finds_room_and_who_holds_something_is_still_there() {
        let test = async {
            let directory = directory(MAX_ACTORS);
            let held = directory.get(&0).unwrap().lineage.holds.begin();
            let most = u32::try_from(MAX_ACTORS).unwrap();
            for key in 1..most {
                assert!(directory.get(&key).is_some());
            }
            assert_eq!(directory.readings().len(), MAX_ACTORS);
            for key in most..most + 10 {
                assert!(directory.get(&key).is_some());
            }
            assert_eq!(directory.readings().len(), 11);
            assert!(directory.find(&0).is_some());
            drop(held);
        };
        LocalSet::new().run_until(test).await;
    }
}
