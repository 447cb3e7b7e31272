//! The tables of that outbox: what is written, by whom, and which delivery of an order is due.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::time::Instant;

use crate::delivery::outbox::{LEASE, Lease, Then, Turn};
use crate::delivery::queue::FAILING_AFTER;
use crate::delivery::schedule::TRIED_FOR;
use crate::domain::delivery::{Attempt, Fate, Mark};
use crate::domain::event_kind::EventKinds;

/// Most attempts that a row keeps.
const MAX_LOG: usize = 50;

/// Where a delivery that has a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowState {
    /// It is tried at this moment.
    Waiting(Instant),
    /// It waits for an earlier one of its order.
    Behind,
    Delivered,
    /// Its time is over.
    Failed,
}

impl RowState {
    pub(super) const fn waits(self) -> bool {
        matches!(self, Self::Waiting(_) | Self::Behind)
    }
}

/// A delivery that failed, waits behind one that did, or is replayed.
#[derive(Debug, Clone)]
pub struct Row {
    pub order: u32,
    pub attempts: u32,
    /// How often it was replayed.
    pub replays: u32,
    pub state: RowState,
    pub log: Vec<Attempt>,
    pub ends: Instant,
}

/// How long a turn takes: until it is written, and until that is heard.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// Until it is written, and read.
    pub before: Duration,
    /// From then until it is heard.
    pub after: Duration,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Committed {
    pub(super) order: u32,
    /// The order's number of it.
    pub(super) sequence: u32,
    pub(super) at: Instant,
}

/// What an outbox has of one endpoint and its partner.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a column")]
pub struct Tables {
    pub(super) events: Vec<Committed>,
    /// Deliveries that have rows, by the event's number.
    pub rows: BTreeMap<i64, Row>,
    /// Every event up to here was seen to.
    pub cursor: i64,
    pub failures: u32,
    /// The endpoint gets nothing.
    pub disabled: bool,
    /// The store answers nothing.
    pub down: bool,
    /// How fast it is.
    pub pace: Pace,
    pub(super) removed: bool,
    pub(super) step: u32,
    pub(super) due_at: Option<Instant>,
    pub(super) delivered: u64,
    pub(super) refused: u64,
    pub(super) leased_until: Option<Instant>,
    pub(super) kinds: EventKinds,
    pub(super) secret: u8,
    pub(super) previous: Option<u8>,
    lease: i64,
    turn: i64,
    owner: (String, u32),
    lives: HashMap<String, u32>,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            rows: BTreeMap::new(),
            cursor: 0,
            failures: 0,
            disabled: false,
            down: false,
            pace: Pace::default(),
            removed: false,
            step: 0,
            due_at: None,
            delivered: 0,
            refused: 0,
            leased_until: None,
            kinds: EventKinds::ALL,
            secret: 1,
            previous: None,
            lease: 0,
            turn: 0,
            owner: (String::new(), 0),
            lives: HashMap::new(),
        }
    }
}

impl Tables {
    pub(super) fn start(&mut self, node: &str) -> u32 {
        let life = self.lives.entry(node.to_owned()).or_default();
        *life += 1;
        *life
    }

    pub(super) fn commit(&mut self, order: u32) -> i64 {
        let before = self.events.iter().rev().find(|event| event.order == order);
        self.events.push(Committed {
            order,
            sequence: before.map_or(0, |event| event.sequence) + 1,
            at: Instant::now(),
        });
        self.newest()
    }

    pub(super) fn newest(&self) -> i64 {
        i64::try_from(self.events.len()).unwrap()
    }

    pub(super) fn event(&self, number: i64) -> Committed {
        self.events[usize::try_from(number).unwrap() - 1]
    }

    pub(super) fn is_leased_under(&self, lease: Lease, life: &(String, u32)) -> bool {
        self.lease == lease.0 && self.owner == *life && !self.removed
    }

    pub(super) fn take(&mut self, life: &(String, u32)) -> Option<Lease> {
        let now = Instant::now();
        let due = self.due_at.is_some_and(|due| due <= now + Duration::from_secs(1));
        let new = self.failures < FAILING_AFTER && self.cursor < self.newest();
        let is_own = self.owner.0 == life.0 && self.owner.1 < life.1;
        let free = self.leased_until.is_none_or(|until| until <= now) || is_own;
        if self.removed || self.disabled || !free || !(due || new) {
            return None;
        }
        self.lease += 1;
        self.turn = 0;
        self.owner = life.clone();
        self.leased_until = Some(now + LEASE);
        Some(Lease(self.lease))
    }

    /// As before the last taking.
    pub(super) fn forget_taking(&mut self) {
        self.lease -= 1;
        self.owner = (String::new(), 0);
        self.leased_until = None;
    }

    /// Takes the lease away, and lets what failed be tried at once.
    pub(super) fn recall(&mut self) {
        self.lease += 1;
        self.leased_until = None;
        if self.failures > 0 {
            self.due_at = Some(Instant::now());
        }
        self.free();
    }

    pub(super) fn write(&mut self, turn: &Turn) {
        let now = Instant::now();
        let changes = &turn.changes;
        self.cursor = self.cursor.max(changes.cursor);
        self.failures = changes.health.failures;
        self.step = changes.health.step;
        self.disabled |= turn.gone;
        if turn.number > self.turn {
            self.turn = turn.number;
            self.delivered += u64::from(turn.delivered);
            self.refused += u64::from(turn.refused);
        }
        self.leased_until = (turn.then != Then::Release).then(|| now + LEASE);
        for mark in &changes.marks {
            self.mark(*mark, turn.now);
        }
        let orders = changes.marks.iter().map(|mark| self.event(mark.number).order);
        self.line_up(orders.collect());
        for (number, attempt) in &turn.attempts {
            self.remember(*number, attempt);
        }
        if changes.recovered {
            self.free();
        }
        self.due_at = turn.wait.map(|wait| now + wait).or(self.first_due());
    }

    /// Sends these again, each with 24 hours of its own.
    pub(super) fn replay(&mut self, numbers: RangeInclusive<i64>) {
        let now = Instant::now();
        if self.failures == 0 || self.due_at.is_none() {
            self.due_at = Some(now);
        }
        let mut orders = BTreeSet::new();
        for number in numbers {
            let row = self.row(number);
            row.state = RowState::Behind;
            row.attempts = 0;
            row.replays += 1;
            row.ends = now + TRIED_FOR;
            orders.insert(row.order);
        }
        self.line_up(orders);
    }

    fn row(&mut self, number: i64) -> &mut Row {
        let Committed { order, at, .. } = self.event(number);
        self.rows.entry(number).or_insert(Row {
            order,
            attempts: 0,
            replays: 0,
            state: RowState::Behind,
            log: Vec::new(),
            ends: at + TRIED_FOR,
        })
    }

    /// Of a row that was replayed since, it says nothing.
    fn mark(&mut self, mark: Mark, now: Duration) {
        let row = self.row(mark.number);
        if row.replays != mark.replays {
            return;
        }
        row.attempts = mark.attempts;
        row.state = match mark.fate {
            Fate::Delivered => RowState::Delivered,
            Fate::Again(at) => RowState::Waiting(Instant::now() + at.saturating_sub(now)),
            Fate::Behind => RowState::Behind,
            Fate::Failed => RowState::Failed,
        };
    }

    /// Of each of these orders the first that waits has a time, which is now if it had none; the others have none.
    fn line_up(&mut self, orders: BTreeSet<u32>) {
        let now = Instant::now();
        for order in orders {
            let waiting = self.rows.values_mut();
            let mut waiting = waiting.filter(|row| row.order == order && row.state.waits());
            if let Some(first) = waiting.next()
                && first.state == RowState::Behind
            {
                first.state = RowState::Waiting(now);
            }
            waiting.for_each(|row| row.state = RowState::Behind);
        }
    }

    /// What is said twice is remembered once.
    fn remember(&mut self, number: i64, attempt: &Attempt) {
        if let Some(row) = self.rows.get_mut(&number)
            && row.log.last() != Some(attempt)
        {
            row.log.push(attempt.clone());
            let surplus = row.log.len().saturating_sub(MAX_LOG);
            row.log.drain(..surplus);
        }
    }

    /// What waits for its next attempt is due.
    fn free(&mut self) {
        let now = Instant::now();
        for row in self.rows.values_mut() {
            if let RowState::Waiting(due) = &mut row.state {
                *due = (*due).min(now);
            }
        }
    }

    fn first_due(&self) -> Option<Instant> {
        let due = |row: &Row| match row.state {
            RowState::Waiting(due) => Some(due),
            _ => None,
        };
        self.rows.values().filter_map(due).min()
    }
}
