//! Which delivery of an endpoint may be tried now, and what is to be written of those that were? Pure.
//!
//! The queue is a view of what the store has: events past the cursor, and rows of deliveries that failed or wait behind one
//! that did. It holds a window of them; a backlog of any length stays in the store.
//!
//! | an event is | where |
//! |---|---|
//! | delivered at once | nowhere: the cursor goes past it |
//! | failed | a row with the time of its next attempt; the cursor goes past it |
//! | behind a failed one of its order | a row that waits for that one |
//! | waiting while the endpoint fails | past the cursor, as any new event |
//!
//! Rules: of an order one delivery is under way, the earliest that waits. While the endpoint fails, the oldest delivery
//! alone is tried; what is over its time then was given up with it. The cursor passes nothing that is neither taken nor in
//! a row. What was replayed since it was read is tried again after that, whatever becomes of an attempt that is under way.

mod words;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

pub use self::words::{Changes, Read, Want};
use crate::domain::delivery::{Ending, Fate, Health, Mark, Waiting};
use crate::domain::ids::OrderId;

/// How many deliveries of an endpoint are under way at once, when it takes them: orders side by side.
pub const MAX_AT_ONCE: usize = 16;

/// How many deliveries of an endpoint are in memory for each that may be under way: enough to keep those going while more
/// are read. An endpoint that takes nothing has one under way, so nobody reads for it what it will not get to.
const READ_AHEAD: usize = 16;

/// After so many failures in a row only the oldest delivery is tried (contract §6).
pub const FAILING_AFTER: u32 = 5;

/// The deliveries of one endpoint that are in memory.
#[derive(Debug)]
pub struct Queue {
    /// Those of each order, by number. What is under way is the first, and is in `under_way`, too.
    chains: HashMap<OrderId, BTreeMap<i64, Waiting>>,
    /// The first of each order that is not under way.
    heads: BTreeMap<i64, OrderId>,
    under_way: BTreeMap<i64, Waiting>,
    /// How many may be under way: doubles with each that is taken, halves with each that is not.
    room: usize,
    /// Events up to here were read.
    read_to: i64,
    /// Events up to there that are neither taken nor in a row.
    open: BTreeSet<i64>,
    /// Events past there that are taken or in a row.
    settled: BTreeSet<i64>,
    health: Health,
    /// When the last attempt failed.
    failed_at: Duration,
    /// The least time between two attempts while the endpoint fails.
    pause: Duration,
    marks: Vec<Mark>,
    recovered: bool,
}

impl Queue {
    /// Nothing is read yet; every event up to `cursor` was seen to. `pause` is the least time between two attempts while
    /// the endpoint fails.
    #[must_use]
    pub fn new(cursor: i64, health: Health, pause: Duration) -> Self {
        Self {
            chains: HashMap::new(),
            heads: BTreeMap::new(),
            under_way: BTreeMap::new(),
            room: 1,
            read_to: cursor,
            open: BTreeSet::new(),
            settled: BTreeSet::new(),
            health,
            failed_at: Duration::ZERO,
            pause,
            marks: Vec::new(),
            recovered: false,
        }
    }

    /// Whether only the oldest delivery is tried.
    #[must_use]
    pub const fn failing(&self) -> bool {
        self.health.failures >= FAILING_AFTER
    }

    fn len(&self) -> usize {
        self.chains.values().map(BTreeMap::len).sum()
    }

    /// The numbers of those that are.
    pub fn numbers(&self) -> impl Iterator<Item = i64> {
        self.chains.values().flat_map(BTreeMap::keys).copied()
    }

    /// What there is room to read; `None` while there is none.
    #[must_use]
    pub fn wants(&self) -> Option<Want> {
        let len = self.len();
        if self.failing() {
            let after = self.read_to;
            return (len == 0).then_some(Want::Oldest { after });
        }
        let window = self.room * READ_AHEAD;
        (len <= window / 2).then(|| Want::Due {
            after: self.read_to,
            most: window - len,
        })
    }

    /// Takes in what was read as `want` said, in the order of the numbers; events up to `read_to` were looked at.
    pub fn load(&mut self, want: Want, read: Vec<Read>, read_to: i64) {
        match want {
            Want::Due { .. } if self.failing() => {}
            Want::Due { .. } => {
                self.has_read(read_to);
                read.into_iter().for_each(|one| self.take_in(one));
            }
            Want::Oldest { .. } => self.load_oldest(read, read_to),
        }
        self.settled = self.settled.split_off(&(self.read_to + 1));
    }

    /// The next delivery to try at this moment; from here on it is under way.
    pub fn next(&mut self, now: Duration) -> Option<Waiting> {
        let room = if self.failing() { 1 } else { self.room };
        if self.under_way.len() >= room {
            return None;
        }
        let due = |(number, order_id): (&i64, &OrderId)| {
            let waiting = *self.chains.get(order_id)?.get(number)?;
            (waiting.due <= now).then_some(waiting)
        };
        let waiting = self.heads.iter().find_map(due)?;
        self.heads.remove(&waiting.number);
        self.under_way.insert(waiting.number, waiting);
        Some(waiting)
    }

    /// When the next delivery that is in memory and not under way is due.
    #[must_use]
    pub fn due_at(&self) -> Option<Duration> {
        let due = |(number, order_id): (&i64, &OrderId)| Some(self.chains.get(order_id)?.get(number)?.due);
        self.heads.iter().filter_map(due).min()
    }

    /// How many are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// How the endpoint is doing.
    #[must_use]
    pub const fn health(&self) -> Health {
        self.health
    }

    /// A delivery that was under way has ended at this moment: says what is known of it. `plan` says when one with so many
    /// failed attempts is tried again, if its last attempt is at the moment that it is given.
    pub fn ended(
        &mut self,
        number: i64,
        ending: Ending,
        at: Duration,
        plan: impl Fn(u32, Duration) -> Option<Duration>,
    ) -> Option<Waiting> {
        let waiting = self.under_way.remove(&number)?;
        match ending {
            Ending::Delivered => self.delivered(waiting),
            Ending::Refused(_) | Ending::Gone => self.refused(waiting, at, plan),
        }
        Some(waiting)
    }

    /// What is to be written now. It is not told again.
    pub fn take_changes(&mut self) -> Changes {
        Changes {
            cursor: self.cursor(),
            health: self.health,
            marks: std::mem::take(&mut self.marks),
            recovered: std::mem::take(&mut self.recovered),
        }
    }

    /// Whether something must be written before it is lost: the cursor alone may wait.
    #[must_use]
    pub fn has_marks(&self) -> bool {
        !self.marks.is_empty() || self.recovered
    }

    /// Every event up to this number is taken, in a row, or not asked for.
    #[must_use]
    pub fn cursor(&self) -> i64 {
        self.open.first().map_or(self.read_to, |first| first - 1)
    }

    fn has_read(&mut self, read_to: i64) {
        let events = self.under_way.values().filter(|waiting| !waiting.stored);
        let events = events.map(|waiting| waiting.number);
        let now_open = events.filter(|number| *number > self.read_to && *number <= read_to);
        self.open.extend(now_open);
        self.read_to = self.read_to.max(read_to);
    }

    fn take_in(&mut self, read: Read) {
        let Read { waiting, behind } = read;
        let Waiting { number, order_id, .. } = waiting;
        if waiting.stored {
            // Replayed before it was sent, or while it is: what becomes of it is written, and the row read after that.
            self.settle(number);
            self.under_way
                .entry(number)
                .and_modify(|tried| tried.stored = true);
        }
        if self.knows(&waiting) {
            return;
        }
        let behind = behind || self.marks.iter().any(|mark| mark.holds_back(&waiting));
        match (waiting.stored, behind) {
            (true, false) => {}
            (true, true) => return,
            (false, true) => return self.mark(&waiting, Fate::Behind),
            (false, false) => drop(self.open.insert(number)),
        }
        self.chains.entry(order_id).or_default().insert(number, waiting);
        self.expose(order_id);
    }

    /// Whether nothing new is said of it: it is in memory, and was not replayed since; or it is under way, or was a moment ago,
    /// and is read once that is written.
    fn knows(&self, waiting: &Waiting) -> bool {
        let number = &waiting.number;
        let known = self
            .chains
            .get(&waiting.order_id)
            .and_then(|chain| chain.get(number));
        known.is_some_and(|known| known.replays >= waiting.replays)
            || self.under_way.contains_key(number)
            || self.marks.iter().any(|mark| mark.number == *number)
            || (!waiting.stored && self.settled.contains(number))
    }

    /// Those whose time is over were tried in the person of the one before them, and are given up; the next is tried.
    fn load_oldest(&mut self, read: Vec<Read>, read_to: i64) {
        if !self.failing() || !self.chains.is_empty() {
            return;
        }
        for Read { mut waiting, .. } in read {
            if self.knows(&waiting) {
                continue;
            }
            if !waiting.stored {
                self.has_read(waiting.number);
                self.open.insert(waiting.number);
            }
            if waiting.ends <= self.failed_at {
                self.mark(&waiting, Fate::Failed);
                continue;
            }
            let planned = if waiting.attempts > 0 {
                waiting.due
            } else {
                self.health.not_before
            };
            waiting.due = planned.min(waiting.ends).max(self.earliest());
            self.chains
                .insert(waiting.order_id, BTreeMap::from([(waiting.number, waiting)]));
            self.heads.insert(waiting.number, waiting.order_id);
            return;
        }
        self.has_read(read_to);
        // Nothing waits that could be tried: what comes next is, and one more failure is enough.
        self.health.failures = FAILING_AFTER - 1;
    }

    /// The first of an order may be tried, if none of the order is under way.
    fn expose(&mut self, order_id: OrderId) {
        let Some(chain) = self.chains.get(&order_id) else {
            return;
        };
        if chain.keys().any(|number| self.under_way.contains_key(number)) {
            return;
        }
        for number in chain.keys() {
            self.heads.remove(number);
        }
        match chain.first_key_value() {
            Some((number, _)) => drop(self.heads.insert(*number, order_id)),
            None => drop(self.chains.remove(&order_id)),
        }
    }

    fn earliest(&self) -> Duration {
        match self.failed_at {
            Duration::ZERO => Duration::ZERO,
            failed_at => failed_at + self.pause,
        }
    }

    fn delivered(&mut self, waiting: Waiting) {
        if self.failing() {
            self.recovered = true;
        }
        self.health = Health::default();
        self.room = (self.room * 2).min(MAX_AT_ONCE);
        if waiting.stored {
            self.mark(&waiting, Fate::Delivered);
            self.leave(&waiting);
            self.wait_behind(waiting.order_id);
        } else {
            self.settle(waiting.number);
            self.leave(&waiting);
        }
    }

    fn refused(&mut self, waiting: Waiting, at: Duration, plan: impl Fn(u32, Duration) -> Option<Duration>) {
        let failed = waiting.failed();
        let failed_before = self.failing();
        self.room = (self.room / 2).max(1);
        self.failed_at = at;
        self.health.failures = self.health.failures.saturating_add(1);
        self.health.step = self.health.step.max(failed.attempts);
        let attempts = if self.failing() {
            self.health.step
        } else {
            failed.attempts
        };
        self.health.not_before = plan(attempts, Duration::MAX).unwrap_or(at);
        let due = plan(attempts, waiting.ends);
        self.mark(&failed, due.map_or(Fate::Failed, Fate::Again));
        self.leave(&failed);
        if due.is_some() || failed.stored {
            self.wait_behind(failed.order_id);
        }
        if self.failing() && !failed_before {
            self.forget_what_waits();
        }
    }

    /// What else is in memory of its order waits in rows, like itself: which of them is the next, of those too that a replay
    /// has put between, the store knows.
    fn wait_behind(&mut self, order_id: OrderId) {
        for (number, waiting) in self.chains.remove(&order_id).unwrap_or_default() {
            self.heads.remove(&number);
            if !waiting.stored {
                self.mark(&waiting, Fate::Behind);
            }
        }
    }

    /// From now on the oldest alone is tried: the others are read again when it is their turn.
    fn forget_what_waits(&mut self) {
        let under_way = &self.under_way;
        let mut unread = self.read_to;
        self.chains.retain(|_, chain| {
            chain.retain(|number, waiting| {
                let stays = under_way.contains_key(number);
                if !stays && !waiting.stored {
                    unread = unread.min(number - 1);
                }
                stays
            });
            !chain.is_empty()
        });
        self.heads.clear();
        // What lies past it and was settled would be read again.
        let settled = (unread + 1..=self.read_to).filter(|number| !self.open.contains(number));
        self.settled.extend(settled);
        drop(self.open.split_off(&(unread + 1)));
        self.read_to = unread;
    }

    fn mark(&mut self, waiting: &Waiting, fate: Fate) {
        self.marks.push(waiting.marked(fate));
        if !waiting.stored {
            self.settle(waiting.number);
        }
    }

    fn settle(&mut self, number: i64) {
        if number > self.read_to {
            self.settled.insert(number);
        } else {
            self.open.remove(&number);
        }
    }

    /// It is no longer the first of its order.
    fn leave(&mut self, waiting: &Waiting) {
        if let Some(chain) = self.chains.get_mut(&waiting.order_id) {
            chain.remove(&waiting.number);
        }
        self.expose(waiting.order_id);
    }
}

#[cfg(test)]
mod tests;
