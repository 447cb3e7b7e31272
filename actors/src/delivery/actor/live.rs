//! An endpoint that is leased here: its queue, what is under way, and what is to be done next. No await, no clock.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::health_of;
use crate::delivery::outbox::{LEASE, Lease, Opened, Page, Pending, Then, Turn};
use crate::delivery::places::Places;
use crate::delivery::queue::{Queue, Read, Want};
use crate::delivery::schedule::{self, FIRST_GAP, Failure};
use crate::domain::delivery::{Attempt, Ending, Letter, Target, Waiting};
use crate::supervisor::OpenHold;

/// How long the cursor may run ahead of what is written: after a crash so much is delivered again.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// How often a lease is renewed: three times before it would run out.
const RENEW_EVERY: Duration = Duration::from_secs(LEASE.as_secs() / 3);

/// How long an endpoint that has nothing to do is kept: a partner that orders goes on ordering.
const IDLE: Duration = Duration::from_secs(10);

/// How soon a place is looked for again when all are taken.
const NO_PLACE: Duration = Duration::from_millis(20);

/// What is to be done next.
pub(super) enum Next {
    Turn(Turn),
    /// Nothing for so long, or until something ends.
    Wait(Option<Duration>),
}

/// An endpoint that is leased here.
pub(super) struct Live {
    opened: Opened,
    queue: Queue,
    letters: HashMap<i64, Letter>,
    attempts: Vec<(i64, Attempt)>,
    delivered: u32,
    refused: u32,
    turning: bool,
    turns: i64,
    /// There may be something new to read.
    look: bool,
    /// When the next row is due.
    row_due: Option<Duration>,
    gone: bool,
    resting: bool,
    crowded: bool,
    saved_at: Duration,
    saved_cursor: i64,
    busy_at: Duration,
    _hold: OpenHold,
}

impl Live {
    /// It was asked for, and is heard of now.
    pub(super) fn new(opened: Opened, asked: Duration, now: Duration, hold: OpenHold) -> Self {
        Self {
            queue: Queue::new(opened.cursor, health_of(&opened, now), FIRST_GAP),
            saved_cursor: opened.cursor,
            opened,
            letters: HashMap::new(),
            attempts: Vec::new(),
            delivered: 0,
            refused: 0,
            turning: false,
            turns: 0,
            look: true,
            row_due: None,
            gone: false,
            resting: false,
            crowded: false,
            saved_at: asked,
            busy_at: now,
            _hold: hold,
        }
    }

    pub(super) const fn lease(&self) -> Lease {
        self.opened.lease
    }

    pub(super) fn target(&self) -> Arc<Target> {
        Arc::clone(&self.opened.target)
    }

    pub(super) fn letter(&self, number: i64) -> Option<Letter> {
        self.letters.get(&number).cloned()
    }

    pub(super) const fn look(&mut self) {
        self.look = true;
    }

    pub(super) const fn rest(&mut self, resting: bool) {
        self.resting = resting;
    }

    /// Whether the lease must be taken for lost.
    pub(super) fn is_overdue(&self, now: Duration) -> bool {
        now > self.saved_at + LEASE
    }

    /// What is to be sent now, each with its place.
    pub(super) fn due(&mut self, now: Duration, places: &Places) -> Vec<(Waiting, OwnedSemaphorePermit)> {
        let mut due = Vec::new();
        self.crowded = false;
        if self.resting || self.gone || self.is_overdue(now) {
            return due;
        }
        while self.queue.due_at().is_some_and(|at| at <= now) {
            let Some(place) = places.take(self.queue.under_way()) else {
                self.crowded = true;
                break;
            };
            let Some(waiting) = self.queue.next(now) else {
                break;
            };
            due.push((waiting, place));
        }
        due
    }

    /// An attempt ended.
    pub(super) fn ended(
        &mut self,
        waiting: Waiting,
        ending: Ending,
        attempt: Attempt,
        at: Duration,
        chance: f64,
    ) {
        let retry_after = match ending {
            Ending::Refused(after) => after,
            Ending::Gone | Ending::Delivered => None,
        };
        let plan = |attempts, ends| {
            let failure = Failure {
                attempts,
                at,
                retry_after,
                chance,
            };
            schedule::next(failure, ends)
        };
        let Some(waiting) = self.queue.ended(waiting.number, ending, at, plan) else {
            return;
        };
        match ending {
            Ending::Delivered => self.delivered += 1,
            Ending::Refused(_) | Ending::Gone => self.refused += 1,
        }
        if waiting.stored || ending != Ending::Delivered {
            self.attempts.push((waiting.number, attempt));
        }
        self.letters.remove(&waiting.number);
        self.gone |= ending == Ending::Gone;
        self.busy_at = at;
        // What waited for it, or while it failed, may be due.
        self.look |= self.queue.failing() || self.queue.has_marks();
    }

    /// What is to be done now.
    pub(super) fn next(&mut self, now: Duration) -> Next {
        if self.turning {
            return Next::Wait(None);
        }
        if self.row_due.is_some_and(|due| due <= now) {
            self.row_due = None;
            self.look = true;
        }
        let may_read = !self.resting && !self.gone;
        let want = if self.look && may_read {
            self.queue.wants()
        } else {
            None
        };
        if self.goes_to_rest(now, want) {
            return self.turn(now, Then::Release);
        }
        if want.is_some() || self.queue.has_marks() || !self.attempts.is_empty() || self.saves(now) {
            return self.turn(now, Then::Keep(want));
        }
        Next::Wait(Some(self.wait(now)))
    }

    /// Whether it is time to write the cursor, or to renew the lease.
    fn saves(&self, now: Duration) -> bool {
        now >= self.save_at()
    }

    fn save_at(&self) -> Duration {
        let moved = self.queue.cursor() != self.saved_cursor;
        self.saved_at + if moved { SAVE_EVERY } else { RENEW_EVERY }
    }

    /// Nothing is under way, nothing is due soon, or nothing is to be sent any more.
    fn goes_to_rest(&self, now: Duration, want: Option<Want>) -> bool {
        if self.queue.under_way() > 0 {
            return false;
        }
        if self.resting || self.gone {
            return true;
        }
        let soon = |due: Option<Duration>| due.is_some_and(|due| due <= now + IDLE);
        let idle = want.is_none() && !soon(self.queue.due_at()) && !soon(self.row_due);
        // What is far away needs nobody who waits for it here.
        idle && (now >= self.busy_at + IDLE || self.queue.failing())
    }

    fn wait(&self, now: Duration) -> Duration {
        let due = self.queue.due_at().filter(|due| *due > now);
        let save = self.save_at();
        let idle = (self.queue.under_way() == 0).then_some(self.busy_at + IDLE);
        let place = self.crowded.then_some(now + NO_PLACE);
        let next = [due, self.row_due, Some(save), idle, place];
        let next = next.into_iter().flatten().min().unwrap_or(save);
        next.saturating_sub(now).max(Duration::from_millis(1))
    }

    fn turn(&mut self, now: Duration, then: Then) -> Next {
        self.turning = true;
        self.turns += 1;
        if matches!(then, Then::Keep(Some(_))) {
            self.look = false;
        }
        let failing = self.queue.failing();
        let planned = self.queue.due_at().unwrap_or(self.queue.health().not_before);
        let mut turn = Turn {
            lease: self.opened.lease,
            number: self.turns,
            save: self.saves(now),
            changes: self.queue.take_changes(),
            now,
            attempts: std::mem::take(&mut self.attempts),
            delivered: 0,
            refused: 0,
            gone: self.gone,
            wait: failing.then(|| planned.saturating_sub(now)),
            then,
        };
        if turn.writes() {
            turn.delivered = std::mem::take(&mut self.delivered);
            turn.refused = std::mem::take(&mut self.refused);
        }
        Next::Turn(turn)
    }

    /// A turn was written. Says whether the lease is still held.
    pub(super) fn turned(&mut self, turn: &Turn, page: Page, now: Duration) -> bool {
        self.turning = false;
        if turn.writes() {
            // The lease is no shorter than from then on, however late this was heard.
            self.saved_at = turn.now;
            self.saved_cursor = turn.changes.cursor;
        }
        let want = match turn.then {
            Then::Release => return false,
            Then::Keep(want) => want,
        };
        if let Some(want) = want {
            self.row_due = page.next_due_in.map(|wait| now + wait);
            if !page.pending.is_empty() {
                self.busy_at = now;
            }
            self.look |= page.more;
            let read = page.pending.iter().map(|pending| read_at(pending, now)).collect();
            self.queue.load(want, read, page.read_to);
            let letters = page.pending.into_iter();
            self.letters
                .extend(letters.map(|pending| (pending.letter.number, pending.letter)));
            let known: HashSet<i64> = self.queue.numbers().collect();
            self.letters.retain(|number, _| known.contains(number));
        }
        true
    }
}

fn read_at(pending: &Pending, now: Duration) -> Read {
    Read {
        waiting: Waiting {
            number: pending.letter.number,
            order_id: pending.order_id,
            attempts: pending.attempts,
            replays: pending.replays,
            stored: pending.stored,
            due: after(now, pending.due_in),
            ends: after(now, pending.ends_in),
        },
        behind: pending.behind,
    }
}

/// A moment that may lie in the past, down to the beginning.
fn after(now: Duration, span: time::Duration) -> Duration {
    let amount = span.unsigned_abs();
    if span.is_negative() {
        now.saturating_sub(amount)
    } else {
        now.saturating_add(amount)
    }
}
