//! Tables of the in-memory outbox: events, delivery rows, lease, endpoint health.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::time::Instant;
use vouchsafe_actors::delivery::outbox::{FlushRequest, LEASE_DURATION, Lease, LeaseAction};
use vouchsafe_actors::delivery::queue::FAILING_THRESHOLD;
use vouchsafe_actors::delivery::retry::RETRY_WINDOW;
use vouchsafe_domain::delivery::{DeliveryAttempt, DeliveryOutcome, DeliveryUpdate};
use vouchsafe_domain::event_kind::EventKinds;

/// Maximum attempts in a row's log.
const MAX_LOG: usize = 50;

/// State of a delivery that has a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowState {
    /// Next attempt at this time.
    Waiting(Instant),
    /// Waits for an earlier delivery of its order.
    Blocked,
    Delivered,
    /// Its 24 hours are over.
    Failed,
}

impl RowState {
    pub(super) const fn is_waiting(self) -> bool {
        matches!(self, Self::Waiting(_) | Self::Blocked)
    }
}

/// A delivery that failed, waits for a failed one, or is replayed.
#[derive(Debug, Clone)]
pub struct Row {
    pub order: u32,
    pub attempts: u32,
    pub replays: u32,
    pub state: RowState,
    pub log: Vec<DeliveryAttempt>,
    pub expires_at: Instant,
}

/// Latency of a flush.
#[derive(Debug, Clone, Copy, Default)]
pub struct Latency {
    /// Before the flush is written.
    pub before: Duration,
    /// From the write to the response.
    pub after: Duration,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct CommittedEvent {
    pub(super) order: u32,
    /// Sequence number within the order.
    pub(super) sequence: u32,
    pub(super) at: Instant,
}

/// Rows of one endpoint and its partner.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a column")]
pub struct Tables {
    pub(super) events: Vec<CommittedEvent>,
    /// Delivery rows, by event number.
    pub rows: BTreeMap<i64, Row>,
    /// Every event up to this number is delivered or has a row.
    pub cursor: i64,
    pub failures: u32,
    pub disabled: bool,
    /// Every call fails.
    pub unavailable: bool,
    pub latency: Latency,
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
    last_flush: i64,
    owner: (String, u32),
    incarnations: HashMap<String, u32>,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            rows: BTreeMap::new(),
            cursor: 0,
            failures: 0,
            disabled: false,
            unavailable: false,
            latency: Latency::default(),
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
            last_flush: 0,
            owner: (String::new(), 0),
            incarnations: HashMap::new(),
        }
    }
}

impl Tables {
    pub(super) fn next_incarnation(&mut self, node: &str) -> u32 {
        let incarnation = self.incarnations.entry(node.to_owned()).or_default();
        *incarnation += 1;
        *incarnation
    }

    pub(super) fn commit(&mut self, order: u32) -> i64 {
        let before = self.events.iter().rev().find(|event| event.order == order);
        self.events.push(CommittedEvent {
            order,
            sequence: before.map_or(0, |event| event.sequence) + 1,
            at: Instant::now(),
        });
        self.newest()
    }

    pub(super) fn newest(&self) -> i64 {
        i64::try_from(self.events.len()).unwrap()
    }

    pub(super) fn event(&self, number: i64) -> CommittedEvent {
        self.events[usize::try_from(number).unwrap() - 1]
    }

    pub(super) fn is_leased_under(&self, lease: Lease, incarnation: &(String, u32)) -> bool {
        self.lease == lease.0 && self.owner == *incarnation && !self.removed
    }

    pub(super) fn acquire_lease(&mut self, incarnation: &(String, u32)) -> Option<Lease> {
        let now = Instant::now();
        let due = self.due_at.is_some_and(|due| due <= now + Duration::from_secs(1));
        let new = self.failures < FAILING_THRESHOLD && self.cursor < self.newest();
        let is_own = self.owner.0 == incarnation.0 && self.owner.1 < incarnation.1;
        let free = self.leased_until.is_none_or(|until| until <= now) || is_own;
        if self.removed || self.disabled || !free || !(due || new) {
            return None;
        }
        self.lease += 1;
        self.last_flush = 0;
        self.owner = incarnation.clone();
        self.leased_until = Some(now + LEASE_DURATION);
        Some(Lease(self.lease))
    }

    /// Reverts the last lease, as a crash that lost its write would.
    pub(super) fn forget_last_lease(&mut self) {
        self.lease -= 1;
        self.owner = (String::new(), 0);
        self.leased_until = None;
    }

    /// Revokes the lease and makes failed deliveries due at once.
    pub(super) fn revoke_lease(&mut self) {
        self.lease += 1;
        self.leased_until = None;
        if self.failures > 0 {
            self.due_at = Some(Instant::now());
        }
        self.make_all_due();
    }

    pub(super) fn apply(&mut self, flush: &FlushRequest) {
        let now = Instant::now();
        let changes = &flush.changes;
        self.cursor = self.cursor.max(changes.cursor);
        self.failures = changes.health.consecutive_failures;
        self.step = changes.health.backoff_step;
        self.disabled |= flush.gone;
        if flush.sequence > self.last_flush {
            self.last_flush = flush.sequence;
            self.delivered += u64::from(flush.delivered);
            self.refused += u64::from(flush.failed);
        }
        self.leased_until = (flush.lease_action != LeaseAction::Release).then(|| now + LEASE_DURATION);
        for mark in &changes.updates {
            self.apply_mark(*mark, flush.now);
        }
        let orders = changes.updates.iter().map(|mark| self.event(mark.number).order);
        self.promote_first_waiting(orders.collect());
        for (number, attempt) in &flush.attempts {
            self.append_attempt(*number, attempt);
        }
        if changes.recovered {
            self.make_all_due();
        }
        self.due_at = flush.retry_in.map(|wait| now + wait).or(self.first_due());
    }

    /// Replays these events, each with its own 24 hours.
    pub(super) fn replay(&mut self, numbers: RangeInclusive<i64>) {
        let now = Instant::now();
        if self.failures == 0 || self.due_at.is_none() {
            self.due_at = Some(now);
        }
        let mut orders = BTreeSet::new();
        for number in numbers {
            let row = self.row(number);
            row.state = RowState::Blocked;
            row.attempts = 0;
            row.replays += 1;
            row.expires_at = now + RETRY_WINDOW;
            orders.insert(row.order);
        }
        self.promote_first_waiting(orders);
    }

    fn row(&mut self, number: i64) -> &mut Row {
        let CommittedEvent { order, at, .. } = self.event(number);
        self.rows.entry(number).or_insert(Row {
            order,
            attempts: 0,
            replays: 0,
            state: RowState::Blocked,
            log: Vec::new(),
            expires_at: at + RETRY_WINDOW,
        })
    }

    /// Ignores a mark for a row that was replayed since.
    fn apply_mark(&mut self, mark: DeliveryUpdate, now: Duration) {
        let row = self.row(mark.number);
        if row.replays != mark.replays {
            return;
        }
        row.attempts = mark.attempts;
        row.state = match mark.outcome {
            DeliveryOutcome::Delivered => RowState::Delivered,
            DeliveryOutcome::RetryAt(at) => RowState::Waiting(Instant::now() + at.saturating_sub(now)),
            DeliveryOutcome::Blocked => RowState::Blocked,
            DeliveryOutcome::Failed => RowState::Failed,
        };
    }

    /// Per order, makes the first waiting delivery due (now, if it was blocked) and blocks the others.
    fn promote_first_waiting(&mut self, orders: BTreeSet<u32>) {
        let now = Instant::now();
        for order in orders {
            let waiting = self.rows.values_mut();
            let mut waiting = waiting.filter(|row| row.order == order && row.state.is_waiting());
            if let Some(first) = waiting.next()
                && first.state == RowState::Blocked
            {
                first.state = RowState::Waiting(now);
            }
            waiting.for_each(|row| row.state = RowState::Blocked);
        }
    }

    /// Skips an attempt that equals the last one, because flushes are retried.
    fn append_attempt(&mut self, number: i64, attempt: &DeliveryAttempt) {
        if let Some(row) = self.rows.get_mut(&number)
            && row.log.last() != Some(attempt)
        {
            row.log.push(attempt.clone());
            let surplus = row.log.len().saturating_sub(MAX_LOG);
            row.log.drain(..surplus);
        }
    }

    fn make_all_due(&mut self) {
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
