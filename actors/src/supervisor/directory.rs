//! Actor directory: finds the actor of a key, starts it on first use, and replaces it after it died.
//!
//! Actix restarts nothing after a panic, and keeps the old state where it restarts at all. The directory
//! therefore supervises: the next request for a dead actor starts a new one, which loads its state from the
//! store. No map reference is held across an await, and never two at once (DashMap would deadlock).

use std::cmp::Reverse;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::{Arc, Weak};

use actix::{Actor, Addr, AsyncContext as _, Context};
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tracing::error;

use super::holds::OpenHolds;
use super::metrics::{ActorDetails, ActorMetrics, ActorState, ActorStats};
use super::spawner::Spawner;

/// Maximum number of live actors of one kind: at some 4 KiB each, 400 MiB. Beyond it idle actors are evicted;
/// they load from the store when they are needed again.
const MAX_ACTORS: usize = 100_000;

/// At most one in this many actors is evicted at a time, least recently used first: large enough that the
/// scan over all actors is rare, small enough that an actor which is idle for a moment stays.
const EVICTION_DIVISOR: usize = 8;

/// State that the successive incarnations of an actor share.
#[derive(Debug, Clone, Default)]
pub struct Lineage {
    pub metrics: Arc<ActorMetrics>,
    /// Open holds on the actor's state.
    pub holds: Arc<OpenHolds>,
}

/// A reference to a live actor.
pub struct ActorRef<A: Actor> {
    /// Shared: cloning an actix address costs two allocations, and an order would need four.
    pub addr: Arc<Addr<A>>,
    /// Counts the messages sent to it.
    pub lineage: Lineage,
}

impl<A: Actor> std::fmt::Debug for ActorRef<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ActorRef")
    }
}

impl<A: Actor> Clone for ActorRef<A> {
    fn clone(&self) -> Self {
        Self {
            addr: Arc::clone(&self.addr),
            lineage: self.lineage.clone(),
        }
    }
}

impl<A: Actor<Context = Context<A>>> ActorRef<A> {
    /// A reference to the actor itself. `own_address` caches the address while a reference to it is alive.
    pub fn to_self(own_address: &mut Weak<Addr<A>>, lineage: &Lineage, ctx: &Context<A>) -> Self {
        let addr = own_address.upgrade().unwrap_or_else(|| {
            let addr = Arc::new(ctx.address());
            *own_address = Arc::downgrade(&addr);
            addr
        });
        Self {
            addr,
            lineage: lineage.clone(),
        }
    }
}

type ActorFactory<K, A> = dyn Fn(K, Lineage) -> A + Send + Sync;

/// The actors of one kind, by key.
pub struct Directory<K, A: Actor> {
    actors: DashMap<K, ActorRef<A>>,
    spawner: Spawner,
    factory: Arc<ActorFactory<K, A>>,
    capacity: usize,
    started_at: Instant,
    /// Counters of evicted actors. The lock also serializes evictions.
    evicted: Mutex<EvictedTotals>,
}

/// An actor with what is shown of it.
#[derive(Debug, Clone)]
pub struct BusyActor<K> {
    pub key: K,
    pub stats: ActorStats,
    pub details: ActorDetails,
}

/// Monotonic counters.
#[derive(Debug, Clone, Copy, Default)]
struct EvictedTotals {
    handled: u64,
    restarts: u64,
}

impl EvictedTotals {
    fn add(&mut self, reading: &ActorStats) {
        self.handled += reading.handled;
        self.restarts += u64::from(reading.restarts);
    }
}

/// Totals over all actors of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ActorTotals {
    pub actors: usize,
    /// Actors that have not loaded their state.
    pub not_ready: usize,
    pub mailbox_depth: usize,
    /// Messages in the fullest mailbox.
    pub deepest_mailbox: usize,
    /// Messages handled since the process started, by evicted actors too.
    pub handled: u64,
    /// Restarts since the process started, of evicted actors too.
    pub restarts: u64,
}

/// All actors of one kind at a moment.
#[derive(Debug)]
pub struct ActorScan<K> {
    pub totals: ActorTotals,
    pub busiest: Vec<BusyActor<K>>,
}

impl<K, A> Directory<K, A>
where
    K: Eq + Hash + Clone + std::fmt::Debug + Send + 'static,
    A: Actor<Context = Context<A>>,
{
    /// Creates an empty directory. `factory` builds an actor that has not loaded its state.
    pub fn new(spawner: Spawner, factory: impl Fn(K, Lineage) -> A + Send + Sync + 'static) -> Self {
        Self {
            actors: DashMap::new(),
            spawner,
            factory: Arc::new(factory),
            capacity: MAX_ACTORS,
            started_at: Instant::now(),
            evicted: Mutex::default(),
        }
    }

    /// Sets the maximum number of live actors.
    #[cfg(test)]
    pub(super) fn with_capacity(self, capacity: usize) -> Self {
        Self { capacity, ..self }
    }

    /// Returns the actor of `key` and starts it if necessary; `None` if the directory is full and no actor is
    /// idle.
    pub fn get(&self, key: &K) -> Option<ActorRef<A>> {
        if let Some(actor) = self.find(key) {
            return Some(actor);
        }
        if self.actors.len() >= self.capacity && !self.evict_idle() && !self.actors.contains_key(key) {
            return None;
        }
        Some(self.get_or_start(key))
    }

    fn get_or_start(&self, key: &K) -> ActorRef<A> {
        match self.actors.entry(key.clone()) {
            // Another thread may have started it meanwhile.
            Entry::Occupied(entry) if entry.get().addr.connected() => entry.get().clone(),
            Entry::Occupied(mut entry) => {
                let lineage = entry.get().lineage.clone();
                lineage.metrics.record_restart();
                error!(actor.key = ?key, "actor restarted after a panic");
                let actor = self.start(key, lineage);
                entry.insert(actor.clone());
                actor
            }
            Entry::Vacant(entry) => entry.insert(self.start(key, Lineage::default())).clone(),
        }
    }

    /// Evicts idle actors, least recently used first. Returns whether there is room.
    fn evict_idle(&self) -> bool {
        let mut evicted = self.lock_evicted();
        if self.actors.len() < self.capacity {
            // Another thread evicted while this one waited for the lock.
            return true;
        }
        let idle = self.actors.iter().filter(|entry| is_idle(entry.value()));
        let idle = idle.map(|entry| (entry.lineage.metrics.last_used_ms(), entry.key().clone()));
        let mut idle: Vec<_> = idle.collect();
        idle.sort_unstable_by_key(|(last_used_ms, _)| *last_used_ms);
        for (_, key) in idle.into_iter().take(self.capacity.div_ceil(EVICTION_DIVISOR)) {
            if let Some((_, actor)) = self.actors.remove_if(&key, |_, actor| is_idle(actor)) {
                evicted.add(&actor.lineage.metrics.stats());
            }
        }
        self.actors.len() < self.capacity
    }

    /// Evicts the actor of `key` if it is idle.
    pub fn evict(&self, key: &K) {
        let mut evicted = self.lock_evicted();
        if let Some((_, actor)) = self.actors.remove_if(key, |_, actor| is_idle(actor)) {
            evicted.add(&actor.lineage.metrics.stats());
        }
    }

    /// Replaces every actor by one that has not loaded its state. Idle ones start on their next request;
    /// holds on the others stay, and what they still decide is verified by its commit.
    pub fn reload_all(&self) {
        let mut evicted = self.lock_evicted();
        self.actors.retain(|key, actor| {
            let is_kept = !is_idle(actor);
            if is_kept {
                actor.lineage.metrics.set_state(ActorState::Loading);
                *actor = self.start(key, actor.lineage.clone());
            } else {
                evicted.add(&actor.lineage.metrics.stats());
            }
            is_kept
        });
    }

    fn lock_evicted(&self) -> MutexGuard<'_, EvictedTotals> {
        self.evicted.lock()
    }

    /// Returns the actor of `key` if it is alive.
    pub fn find(&self, key: &K) -> Option<ActorRef<A>> {
        let actor = self
            .actors
            .get(key)
            .filter(|actor| actor.addr.connected())?
            .clone();
        actor.lineage.metrics.touch(self.now_ms());
        Some(actor)
    }

    /// The counters of every actor.
    pub fn stats(&self) -> Vec<(K, ActorStats)> {
        self.actors
            .iter()
            .map(|entry| (entry.key().clone(), stats_of(entry.value())))
            .collect()
    }

    /// Totals, and up to `limit` actors: those with the fullest mailbox, then with most messages handled,
    /// first. One pass over all actors that keeps at most twice `limit`.
    pub fn scan(&self, limit: usize) -> ActorScan<K> {
        let (mut busiest, mut least) = (Vec::new(), None);
        let totals = self.add_up(|key, stats, actor| {
            if least.is_some_and(|least| stats.load() <= least) {
                return;
            }
            busiest.push(busy_actor(key.clone(), stats, actor));
            if busiest.len() >= 2 * limit {
                keep_busiest(&mut busiest, limit);
                least = busiest.last().map(|actor| actor.stats.load());
            }
        });
        keep_busiest(&mut busiest, limit);
        ActorScan { totals, busiest }
    }

    /// The counters of one actor, without keeping it in memory; `None` if it has not run since it was last
    /// evicted.
    pub fn describe(&self, key: &K) -> Option<BusyActor<K>> {
        let entry = self.actors.get(key)?;
        Some(busy_actor(key.clone(), stats_of(&entry), &entry))
    }

    /// Totals over all actors.
    pub fn totals(&self) -> ActorTotals {
        self.add_up(|_, _, _| {})
    }

    /// Totals over all actors, with a visit to each.
    fn add_up(&self, mut visit: impl FnMut(&K, ActorStats, &ActorRef<A>)) -> ActorTotals {
        // The lock is held until the end: an eviction meanwhile would count an actor twice or not at all.
        let evicted = self.lock_evicted();
        let mut counters = *evicted;
        let mut total = ActorTotals::default();
        for entry in &self.actors {
            let reading = stats_of(entry.value());
            counters.add(&reading);
            total.actors += 1;
            total.not_ready += usize::from(!reading.state.is_ready());
            total.mailbox_depth += reading.mailbox_depth;
            total.deepest_mailbox = total.deepest_mailbox.max(reading.mailbox_depth);
            visit(entry.key(), reading, entry.value());
        }
        ActorTotals {
            handled: counters.handled,
            restarts: counters.restarts,
            ..total
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn start(&self, key: &K, lineage: Lineage) -> ActorRef<A> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        lineage.metrics.touch(self.now_ms());
        let (factory, owned_key, owned_lineage) = (Arc::clone(&self.factory), key.clone(), lineage.clone());
        let addr = self
            .spawner
            .start(hash, move |_| factory(owned_key, owned_lineage));
        ActorRef {
            addr: Arc::new(addr),
            lineage,
        }
    }
}

/// Whether nothing refers to the actor: no hold, no pending request, no address.
///
/// In that case only the directory and the actor itself own the lineage. Nothing else can obtain it while the
/// actor's shard of the map is locked. Removing the entry drops the last address and stops the actor.
fn is_idle<A: Actor>(actor: &ActorRef<A>) -> bool {
    Arc::strong_count(&actor.lineage.holds) <= 2
}

fn busy_actor<K, A: Actor>(key: K, stats: ActorStats, actor: &ActorRef<A>) -> BusyActor<K> {
    BusyActor {
        key,
        stats,
        details: actor.lineage.metrics.details(),
    }
}

fn keep_busiest<K>(actors: &mut Vec<BusyActor<K>>, limit: usize) {
    actors.sort_unstable_by_key(|actor| Reverse(actor.stats.load()));
    actors.truncate(limit);
}

fn stats_of<A: Actor>(actor: &ActorRef<A>) -> ActorStats {
    let reading = actor.lineage.metrics.stats();
    if actor.addr.connected() {
        reading
    } else {
        ActorStats {
            state: ActorState::Ended,
            ..reading
        }
    }
}

#[cfg(test)]
mod tests;
