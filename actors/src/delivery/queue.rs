//! Delivery queue of one endpoint: selects the next delivery to attempt and records what to write about
//! finished ones. Pure.
//!
//! The queue holds a window over the store: events past the cursor, and rows of deliveries that failed or
//! wait for a failed one. A backlog of any length stays in the store.
//!
//! | an event is | stored as |
//! |---|---|
//! | delivered on the first attempt | nothing: the cursor passes it |
//! | failed | a row with the time of its next attempt; the cursor passes it |
//! | blocked by a failed event of its order | a row that waits for that event |
//! | waiting while the endpoint fails | nothing: it lies past the cursor like a new event |
//!
//! Rules: of each order at most one delivery is in flight, the earliest one. While the endpoint fails, its
//! oldest delivery probes it on the retry schedule; each other one has its last attempt when its retry window
//! ends, and one more at once if a retry was requested. A delivery is given up only after an attempt. The
//! cursor passes an event only once it is delivered or has a row. A delivery that is replayed while an
//! attempt is in flight is attempted again afterwards, whatever the outcome of that attempt.

mod failing;
mod types;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

pub use self::types::{LoadedDelivery, QueueChanges, ReadRequest};
use vouchsafe_domain::delivery::{
    AttemptOutcome, DeliveryOutcome, DeliveryUpdate, EndpointHealth, QueuedDelivery,
};
use vouchsafe_domain::ids::OrderId;
pub use vouchsafe_domain::webhook::FAILING_THRESHOLD;

/// Maximum number of deliveries of an endpoint in flight; they belong to different orders.
pub const MAX_CONCURRENCY: usize = 16;

/// Deliveries in memory per delivery that may be in flight: enough to keep those busy while more are read. A
/// failing endpoint has a concurrency of one, so little is read for it in vain.
const READ_AHEAD: usize = 16;

/// Deliveries that are read at once for a failing endpoint.
const FAILING_READ_LIMIT: usize = 2 * MAX_CONCURRENCY;

/// The deliveries of one endpoint that are in memory.
#[derive(Debug)]
pub struct DeliveryQueue {
    /// Deliveries by order and event number. The first of an order may also be in `in_flight`.
    by_order: HashMap<OrderId, BTreeMap<i64, QueuedDelivery>>,
    /// The first delivery of each order that has none in flight.
    heads: BTreeMap<i64, OrderId>,
    in_flight: BTreeMap<i64, QueuedDelivery>,
    /// How many deliveries may be in flight: doubles with each success, halves with each failure.
    concurrency: usize,
    /// The number of the last event that was read.
    scanned_to: i64,
    /// Events up to `scanned_to` that are neither delivered nor have a row.
    unsettled: BTreeSet<i64>,
    /// Events past `scanned_to` that are delivered or have a row.
    settled: BTreeSet<i64>,
    health: EndpointHealth,
    /// When the last attempt failed; zero if none has.
    last_failure_at: Duration,
    /// Minimum time between two probes while the endpoint fails.
    min_retry_interval: Duration,
    /// Events up to this number are attempted even while the endpoint fails: a retry was requested.
    retry_to: i64,
    updates: Vec<DeliveryUpdate>,
    recovered: bool,
}

impl DeliveryQueue {
    /// Creates an empty queue. Every event up to `cursor` is delivered, has a row, or was not subscribed to.
    /// `min_retry_interval` is the minimum time between two probes while the endpoint fails. A retry was
    /// requested for the events up to `retry_to`.
    #[must_use]
    pub fn new(cursor: i64, retry_to: i64, health: EndpointHealth, min_retry_interval: Duration) -> Self {
        Self {
            by_order: HashMap::new(),
            heads: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            concurrency: 1,
            scanned_to: cursor,
            unsettled: BTreeSet::new(),
            settled: BTreeSet::new(),
            health,
            last_failure_at: Duration::ZERO,
            min_retry_interval,
            retry_to,
            updates: Vec::new(),
            recovered: false,
        }
    }

    /// Whether the endpoint is failing: its oldest delivery probes it, the others wait.
    #[must_use]
    pub const fn is_failing(&self) -> bool {
        self.health.consecutive_failures >= FAILING_THRESHOLD
    }

    fn len(&self) -> usize {
        self.by_order.values().map(BTreeMap::len).sum()
    }

    /// The event numbers of the deliveries in memory.
    pub fn numbers(&self) -> impl Iterator<Item = i64> {
        self.by_order.values().flat_map(BTreeMap::keys).copied()
    }

    /// The next read; `None` while there is no room.
    #[must_use]
    pub fn next_read(&self) -> Option<ReadRequest> {
        let len = self.len();
        if self.is_failing() {
            return (len == 0).then_some(ReadRequest::Oldest {
                after: self.scanned_to,
                limit: FAILING_READ_LIMIT,
            });
        }
        let window = self.concurrency * READ_AHEAD;
        (len <= window / 2).then(|| ReadRequest::Due {
            after: self.scanned_to,
            limit: window - len,
        })
    }

    /// Takes over up to which event a retry was requested.
    pub const fn set_retry_to(&mut self, retry_to: i64) {
        self.retry_to = retry_to;
    }

    /// Adds the deliveries that were read for `request`, in order of their event numbers. Events up to
    /// `scanned_to` were scanned. Returns whether the page was taken; otherwise read again.
    pub fn load(&mut self, request: ReadRequest, page: Vec<LoadedDelivery>, scanned_to: i64) -> bool {
        let is_for_failing = matches!(request, ReadRequest::Oldest { .. });
        // Events before the page that were evicted since its request would never be read again.
        if request.after() != self.scanned_to || is_for_failing != self.is_failing() {
            return false;
        }
        self.advance_scan(scanned_to);
        page.into_iter().for_each(|loaded| self.load_one(loaded));
        self.attempt_next_if_empty();
        self.settled = self.settled.split_off(&(self.scanned_to + 1));
        true
    }

    /// The next delivery to attempt, marked as in flight; `None` if none is due or all permits are in use.
    pub fn start_next(&mut self, now: Duration) -> Option<QueuedDelivery> {
        let delivery = if self.is_failing() {
            let schedule = self.failing_schedule();
            *self.heads().find(|delivery| schedule.can_start(delivery, now))?
        } else if self.in_flight.len() < self.concurrency {
            *self.heads().find(|delivery| delivery.due_at <= now)?
        } else {
            return None;
        };
        self.heads.remove(&delivery.number);
        self.in_flight.insert(delivery.number, delivery);
        Some(delivery)
    }

    /// When the next delivery in memory that is not in flight is to be attempted.
    #[must_use]
    pub fn next_due_at(&self) -> Option<Duration> {
        if self.is_failing() {
            let schedule = self.failing_schedule();
            return self.heads().map(|delivery| schedule.attempt_at(delivery)).min();
        }
        self.heads().map(|delivery| delivery.due_at).min()
    }

    /// The first delivery of each order that has none in flight, by number.
    fn heads(&self) -> impl Iterator<Item = &QueuedDelivery> {
        self.heads
            .iter()
            .filter_map(|(number, order_id)| self.by_order.get(order_id)?.get(number))
    }

    /// The number of deliveries in flight.
    #[must_use]
    pub fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }

    /// Records the outcome of an attempt and returns its delivery, if it was in flight. `plan` returns the
    /// time of the next attempt from the number of failed attempts and the time of the last attempt; `None`
    /// to give up.
    pub fn record_attempt(
        &mut self,
        number: i64,
        outcome: AttemptOutcome,
        at: Duration,
        plan: impl Fn(u32, Duration) -> Option<Duration>,
    ) -> Option<QueuedDelivery> {
        let delivery = self.in_flight.remove(&number)?;
        match outcome {
            AttemptOutcome::Delivered => self.record_success(delivery),
            AttemptOutcome::Failed(_) | AttemptOutcome::Gone => self.record_failure(delivery, at, plan),
        }
        Some(delivery)
    }

    /// When the delivery is due again after its last attempt, as long as that change is not taken.
    #[must_use]
    pub fn retry_at(&self, number: i64) -> Option<Duration> {
        let update = self.updates.iter().rfind(|update| update.number == number)?;
        match update.outcome {
            DeliveryOutcome::RetryAt(at) => Some(at),
            DeliveryOutcome::Delivered | DeliveryOutcome::Blocked | DeliveryOutcome::Failed => None,
        }
    }

    /// Takes the changes to write; they are returned once.
    pub fn take_changes(&mut self) -> QueueChanges {
        QueueChanges {
            cursor: self.cursor(),
            health: self.health,
            updates: std::mem::take(&mut self.updates),
            recovered: std::mem::take(&mut self.recovered),
        }
    }

    /// Whether changes must be written before they are lost; the cursor alone can wait.
    #[must_use]
    pub fn has_updates(&self) -> bool {
        !self.updates.is_empty() || self.recovered
    }

    /// Every event up to this number is delivered, has a row, or was not subscribed to.
    #[must_use]
    pub fn cursor(&self) -> i64 {
        self.unsettled.first().map_or(self.scanned_to, |first| first - 1)
    }

    fn advance_scan(&mut self, scanned_to: i64) {
        let events = self.in_flight.values().filter(|delivery| !delivery.has_row);
        let events = events.map(|delivery| delivery.number);
        let newly_unsettled = events.filter(|number| *number > self.scanned_to && *number <= scanned_to);
        self.unsettled.extend(newly_unsettled);
        self.scanned_to = self.scanned_to.max(scanned_to);
    }

    fn load_one(&mut self, loaded: LoadedDelivery) {
        let LoadedDelivery { delivery, is_blocked } = loaded;
        let QueuedDelivery { number, order_id, .. } = delivery;
        if delivery.has_row {
            // It was replayed before it was sent or while it is in flight: the outcome is written first, then
            // the row is read again.
            self.settle(number);
            self.in_flight
                .entry(number)
                .and_modify(|in_flight_delivery| in_flight_delivery.has_row = true);
        }
        if self.is_known(&delivery) {
            return;
        }
        let is_blocked = is_blocked || self.updates.iter().any(|mark| mark.is_blocking(&delivery));
        match (delivery.has_row, is_blocked) {
            (true, false) => {}
            (true, true) => return,
            (false, true) => return self.push_update(&delivery, DeliveryOutcome::Blocked),
            (false, false) => drop(self.unsettled.insert(number)),
        }
        self.by_order
            .entry(order_id)
            .or_default()
            .insert(number, delivery);
        self.refresh_head(order_id);
    }

    /// Whether the delivery is already known: it is in memory and was not replayed since, or it is in flight
    /// or about to be written and will be read again after that.
    fn is_known(&self, delivery: &QueuedDelivery) -> bool {
        let number = &delivery.number;
        let known = self
            .by_order
            .get(&delivery.order_id)
            .and_then(|chain| chain.get(number));
        known.is_some_and(|known| known.replays >= delivery.replays)
            || self.in_flight.contains_key(number)
            || self.updates.iter().any(|mark| mark.number == *number)
            || (!delivery.has_row && self.settled.contains(number))
    }

    /// Makes the first delivery of an order available if none of the order is in flight.
    fn refresh_head(&mut self, order_id: OrderId) {
        let Some(chain) = self.by_order.get(&order_id) else {
            return;
        };
        if chain.keys().any(|number| self.in_flight.contains_key(number)) {
            return;
        }
        for number in chain.keys() {
            self.heads.remove(number);
        }
        match chain.first_key_value() {
            Some((number, _)) => drop(self.heads.insert(*number, order_id)),
            None => drop(self.by_order.remove(&order_id)),
        }
    }

    /// `interval` after the last failure.
    fn earliest_retry(&self, interval: Duration) -> Duration {
        match self.last_failure_at {
            Duration::ZERO => Duration::ZERO,
            failed_at => failed_at + interval,
        }
    }

    fn record_success(&mut self, delivery: QueuedDelivery) {
        if self.is_failing() {
            self.recovered = true;
            self.retry_to = 0;
            self.make_all_due();
        }
        self.health = EndpointHealth::default();
        self.concurrency = (self.concurrency * 2).min(MAX_CONCURRENCY);
        if delivery.has_row {
            self.push_update(&delivery, DeliveryOutcome::Delivered);
            self.remove(&delivery);
            self.block_order(delivery.order_id);
        } else {
            self.settle(delivery.number);
            self.remove(&delivery);
        }
    }

    fn record_failure(
        &mut self,
        delivery: QueuedDelivery,
        at: Duration,
        plan: impl Fn(u32, Duration) -> Option<Duration>,
    ) {
        let failed = delivery.after_failure();
        let was_failing = self.is_failing();
        self.concurrency = (self.concurrency / 2).max(1);
        self.last_failure_at = at;
        self.health.consecutive_failures = self.health.consecutive_failures.saturating_add(1);
        self.health.backoff_step = self.health.backoff_step.max(failed.attempts);
        let attempts = if self.is_failing() {
            self.health.backoff_step
        } else {
            failed.attempts
        };
        self.health.not_before = plan(attempts, Duration::MAX).unwrap_or(at);
        let due = match plan(attempts, delivery.give_up_at) {
            // A requested retry is one attempt: afterwards the delivery waits for a probe to succeed again.
            Some(_) if was_failing && self.is_retry_requested(&delivery) => Some(delivery.give_up_at),
            due => due,
        };
        self.push_update(
            &failed,
            due.map_or(DeliveryOutcome::Failed, DeliveryOutcome::RetryAt),
        );
        self.remove(&failed);
        // The followers of a failing endpoint get rows too, so that the scan reaches other orders: the last
        // attempts of many orders run in parallel, those of one order do not.
        if due.is_some() || failed.has_row || self.is_failing() {
            self.block_order(failed.order_id);
        }
        if self.is_failing() && (!was_failing || self.in_flight.is_empty()) {
            self.evict_waiting();
        }
    }

    /// Moves the other deliveries of the order from memory to rows: only the store knows which of them is
    /// next, since a replay may have inserted earlier ones.
    fn block_order(&mut self, order_id: OrderId) {
        for (number, delivery) in self.by_order.remove(&order_id).unwrap_or_default() {
            self.heads.remove(&number);
            if !delivery.has_row {
                self.push_update(&delivery, DeliveryOutcome::Blocked);
            }
        }
    }

    fn push_update(&mut self, delivery: &QueuedDelivery, outcome: DeliveryOutcome) {
        self.updates.push(delivery.update(outcome));
        if !delivery.has_row {
            self.settle(delivery.number);
        }
    }

    fn settle(&mut self, number: i64) {
        if number > self.scanned_to {
            self.settled.insert(number);
        } else {
            self.unsettled.remove(&number);
        }
    }

    /// Removes a finished delivery from its order.
    fn remove(&mut self, delivery: &QueuedDelivery) {
        if let Some(chain) = self.by_order.get_mut(&delivery.order_id) {
            chain.remove(&delivery.number);
        }
        self.refresh_head(delivery.order_id);
    }
}

#[cfg(test)]
mod tests;
