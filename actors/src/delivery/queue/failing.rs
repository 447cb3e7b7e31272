//! Schedule of a failing endpoint: its oldest delivery probes it, each other one waits for the end of its
//! retry window.

use std::time::Duration;

use vouchsafe_domain::delivery::QueuedDelivery;

use super::{DeliveryQueue, FAILING_THRESHOLD, MAX_CONCURRENCY};

/// Minimum time between a failure and the next last or requested attempts, of which [`MAX_CONCURRENCY`] are
/// in flight at most: a long backlog reaches a receiver that is down spread over time.
const LAST_ATTEMPTS_INTERVAL: Duration = Duration::from_secs(1);

/// When the deliveries of a failing endpoint are attempted.
pub(super) struct FailingSchedule<'a> {
    queue: &'a DeliveryQueue,
    /// The delivery whose retry window ends first.
    oldest: Option<i64>,
}

impl FailingSchedule<'_> {
    /// A probe follows the backoff; a requested retry is due at once; every other delivery has its last
    /// attempt when its retry window ends.
    pub(super) fn attempt_at(&self, delivery: &QueuedDelivery) -> Duration {
        let not_before = self.queue.health.not_before;
        let planned = match (self.is_probe(delivery), self.queue.is_retry_requested(delivery)) {
            (false, false) => delivery.give_up_at,
            (false, true) => delivery.due_at,
            // Without a failure of its own it continues the backoff of the endpoint.
            (true, false) if delivery.attempts == 0 => not_before,
            (true, _) => delivery.due_at.min(not_before),
        };
        let planned = planned.min(delivery.give_up_at);
        let interval = if self.queue.is_retry_requested(delivery) || planned == delivery.give_up_at {
            LAST_ATTEMPTS_INTERVAL
        } else {
            self.queue.min_retry_interval
        };
        planned.max(self.queue.earliest_retry(interval))
    }

    /// Whether the delivery may be attempted now. A probe is sent alone.
    pub(super) fn can_start(&self, delivery: &QueuedDelivery, now: Duration) -> bool {
        let is_requested = self.queue.is_retry_requested(delivery) && delivery.due_at <= now;
        let max_in_flight = if is_requested || delivery.give_up_at <= now {
            MAX_CONCURRENCY
        } else {
            1
        };
        self.attempt_at(delivery) <= now && self.queue.in_flight.len() < max_in_flight
    }

    fn is_probe(&self, delivery: &QueuedDelivery) -> bool {
        self.oldest == Some(delivery.number)
    }
}

impl DeliveryQueue {
    pub(super) fn failing_schedule(&self) -> FailingSchedule<'_> {
        let oldest = self
            .heads()
            .min_by_key(|delivery| (delivery.give_up_at, delivery.number));
        FailingSchedule {
            queue: self,
            oldest: oldest.map(|delivery| delivery.number),
        }
    }

    /// Whether the partner or an operator requested an attempt of everything that waited, and this delivery
    /// did. The store made it due; after that attempt it is due when its retry window ends, like the others.
    pub(super) const fn is_retry_requested(&self, delivery: &QueuedDelivery) -> bool {
        delivery.number <= self.retry_to
    }

    /// While the endpoint fails: when its next attempt is due. With nothing in memory only the store knows,
    /// so the process that leases the endpoint next must read at once.
    #[must_use]
    pub fn failing_due_at(&self) -> Duration {
        self.next_due_at()
            .unwrap_or_else(|| self.earliest_retry(LAST_ATTEMPTS_INTERVAL))
    }

    /// If nothing of a failing endpoint is left to attempt, the next event is attempted, and one more failure
    /// makes the endpoint fail again.
    pub(super) fn attempt_next_if_empty(&mut self) {
        if self.is_failing() && self.by_order.is_empty() {
            self.health.consecutive_failures = FAILING_THRESHOLD - 1;
        }
    }

    /// Makes the deliveries in memory due: the endpoint has recovered.
    pub(super) fn make_all_due(&mut self) {
        for delivery in self.by_order.values_mut().flat_map(|chain| chain.values_mut()) {
            delivery.due_at = Duration::ZERO;
        }
    }

    /// Evicts what is not in flight: the next read is in the order of the next attempts, which each failure
    /// changes.
    pub(super) fn evict_waiting(&mut self) {
        let in_flight = &self.in_flight;
        let mut first_unread = self.scanned_to;
        self.by_order.retain(|_, chain| {
            chain.retain(|number, delivery| {
                let is_in_flight = in_flight.contains_key(number);
                if !is_in_flight && !delivery.has_row {
                    first_unread = first_unread.min(number - 1);
                }
                is_in_flight
            });
            !chain.is_empty()
        });
        self.heads.clear();
        // Events past the new position that are settled must not be read again.
        let settled = (first_unread + 1..=self.scanned_to).filter(|number| !self.unsettled.contains(number));
        self.settled.extend(settled);
        drop(self.unsettled.split_off(&(first_unread + 1)));
        self.scanned_to = first_unread;
    }
}
