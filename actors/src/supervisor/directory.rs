//! Finds the actor of a key, starts it when there is none, and rebuilds it when it has died.
//!
//! Actix restarts nothing after a panic, and keeps the old state where it restarts at all. So supervision is ours: who
//! asks for a dead actor gets a new one, which loads its state from the store. Rule: no reference into the map is held
//! across an await, and never two at once.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use actix::{Actor, Addr, AsyncContext as _, Context};
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tokio::time::Instant;
use tracing::error;

use super::holds::OpenHolds;
use super::meter::{ActorMeter, ActorState, Reading};
use super::spawner::Spawner;

/// Most actors of one kind that live at once: at some 4 KiB each, 400 MiB. Where more keys are asked for, actors that
/// nobody has anything with are forgotten; they come back from the store when they are asked again.
const MAX_ACTORS: usize = 100_000;

/// One in so many, at most, is forgotten to make room: those whom nobody has asked for longest, so that a busy one which is
/// idle for the moment stays; and so many that the look through all of them is seldom made.
const FORGOTTEN_PART: usize = 8;

/// What an actor shares with the incarnations before and after it.
#[derive(Debug, Clone, Default)]
pub struct Lineage {
    pub meter: Arc<ActorMeter>,
    /// The holds that are open on its state.
    pub holds: Arc<OpenHolds>,
}

/// A live actor.
pub struct Found<A: Actor> {
    /// Where to send. Shared: another address of an actor takes two allocations, and an order would make four.
    pub addr: Arc<Addr<A>>,
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
            addr: Arc::clone(&self.addr),
            lineage: self.lineage.clone(),
        }
    }
}

impl<A: Actor<Context = Context<A>>> Found<A> {
    /// What an actor hands out of itself; `handed_out` is the address that it handed out before.
    pub fn own(handed_out: &mut Weak<Addr<A>>, lineage: &Lineage, ctx: &Context<A>) -> Self {
        let addr = handed_out.upgrade().unwrap_or_else(|| {
            let addr = Arc::new(ctx.address());
            *handed_out = Arc::downgrade(&addr);
            addr
        });
        Self {
            addr,
            lineage: lineage.clone(),
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
    began: Instant,
    /// What those did that were forgotten. Held while some are forgotten.
    forgotten: Mutex<Work>,
}

/// What actors have done, of which the sum never falls.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    handled: u64,
    restarts: u64,
}

impl Work {
    fn add(&mut self, reading: &Reading) {
        self.handled += reading.handled;
        self.restarts += u64::from(reading.restarts);
    }
}

/// All actors of one kind together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    pub actors: usize,
    /// How many of them do not know their state.
    pub not_ready: usize,
    pub mailbox_depth: usize,
    /// Messages that wait in the fullest mailbox.
    pub deepest_mailbox: usize,
    /// Messages handled since the process began, by those too that were forgotten.
    pub handled: u64,
    /// How often one was rebuilt since the process began, as above.
    pub restarts: u64,
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
            began: Instant::now(),
            forgotten: Mutex::default(),
        }
    }

    /// The same with room for so many.
    #[cfg(test)]
    pub(super) fn with_room_for(self, limit: usize) -> Self {
        Self { limit, ..self }
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

    /// Forgets some of the actors that nobody has anything with. Says whether there is room.
    fn make_room(&self) -> bool {
        let mut forgotten = self.forgotten();
        if self.actors.len() < self.limit {
            // Somebody else made room while this one waited to.
            return true;
        }
        let idle = self.actors.iter().filter(|entry| is_idle(entry.value()));
        let idle = idle.map(|entry| (entry.lineage.meter.asked_at_ms(), entry.key().clone()));
        let mut idle: Vec<_> = idle.collect();
        idle.sort_unstable_by_key(|(asked_at_ms, _)| *asked_at_ms);
        for (_, key) in idle.into_iter().take(self.limit.div_ceil(FORGOTTEN_PART)) {
            if let Some((_, found)) = self.actors.remove_if(&key, |_, found| is_idle(found)) {
                forgotten.add(&found.lineage.meter.reading());
            }
        }
        self.actors.len() < self.limit
    }

    /// Forgets the actor of `key`, if nobody has anything with it.
    pub fn retire(&self, key: &K) {
        let mut forgotten = self.forgotten();
        if let Some((_, found)) = self.actors.remove_if(key, |_, found| is_idle(found)) {
            forgotten.add(&found.lineage.meter.reading());
        }
    }

    fn forgotten(&self) -> MutexGuard<'_, Work> {
        self.forgotten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The live actor of `key`, if there is one.
    pub fn find(&self, key: &K) -> Option<Found<A>> {
        let found = self
            .actors
            .get(key)
            .filter(|found| found.addr.connected())?
            .clone();
        found.lineage.meter.asked(self.now_ms());
        Some(found)
    }

    /// The counters of every actor.
    pub fn readings(&self) -> Vec<(K, Reading)> {
        self.actors
            .iter()
            .map(|entry| (entry.key().clone(), read(entry.value())))
            .collect()
    }

    /// The counters of all actors together.
    pub fn total(&self) -> Total {
        // Held to the end: nobody is forgotten meanwhile, and counted twice or not at all.
        let forgotten = self.forgotten();
        let mut work = *forgotten;
        let mut total = Total::default();
        for entry in &self.actors {
            let reading = read(entry.value());
            work.add(&reading);
            total.actors += 1;
            total.not_ready += usize::from(reading.state != ActorState::Ready);
            total.mailbox_depth += reading.mailbox_depth;
            total.deepest_mailbox = total.deepest_mailbox.max(reading.mailbox_depth);
        }
        Total {
            handled: work.handled,
            restarts: work.restarts,
            ..total
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn start(&self, key: &K, lineage: Lineage) -> Found<A> {
        let place = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        lineage.meter.asked(self.now_ms());
        let (make, owned_key, owned) = (Arc::clone(&self.make), key.clone(), lineage.clone());
        let addr = self.spawner.start(place, move |_| make(owned_key, owned));
        Found {
            addr: Arc::new(addr),
            lineage,
        }
    }
}

/// Whether nobody has anything with the actor: no hold, no question, no address.
///
/// Besides the directory only the actor itself knows its lineage then, and nobody can come to know it while its part of
/// the map is locked. If it is removed, its last address goes, and with it the actor.
fn is_idle<A: Actor>(found: &Found<A>) -> bool {
    Arc::strong_count(&found.lineage.holds) <= 2
}

fn read<A: Actor>(found: &Found<A>) -> Reading {
    let reading = found.lineage.meter.reading();
    if found.addr.connected() {
        reading
    } else {
        Reading {
            state: ActorState::Ended,
            ..reading
        }
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
        Directory::new(Spawner::Here, |_, lineage| Idle { _lineage: lineage }).with_room_for(limit)
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
            assert_eq!(directory.readings().len(), 2);
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_asked_longest_ago_makes_room_first_and_what_it_did_stays_counted() {
        let test = async {
            let directory = directory(24);
            for key in 0..24 {
                let found = directory.get(&key).unwrap();
                found.lineage.meter.handle();
                found.lineage.meter.restarted();
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            drop(directory.find(&0));
            let before = directory.total();
            drop(directory.get(&24));
            let gone: Vec<_> = (0..24).filter(|key| directory.find(key).is_none()).collect();
            assert_eq!(gone, [1, 2, 3]);
            let after = directory.total();
            assert_eq!((before.actors, after.actors), (24, 22));
            assert_eq!((before.handled, before.restarts), (24, 24));
            assert_eq!((after.handled, after.restarts), (24, 24));
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test(start_paused = true)]
    async fn at_full_size_the_next_key_finds_room_and_who_holds_something_is_still_there() {
        let test = async {
            let directory = directory(MAX_ACTORS);
            let held = directory.get(&0).unwrap().lineage.holds.begin();
            let most = u32::try_from(MAX_ACTORS).unwrap();
            for key in 1..most + 10 {
                assert!(directory.get(&key).is_some());
            }
            let left = MAX_ACTORS - MAX_ACTORS / FORGOTTEN_PART + 10;
            assert_eq!(directory.readings().len(), left);
            assert!(directory.find(&0).is_some());
            drop(held);
        };
        LocalSet::new().run_until(test).await;
    }
}
