//! Queue of a failing endpoint: evicts waiting deliveries and loads only the oldest one.

use std::collections::BTreeMap;

use vouchsafe_domain::delivery::DeliveryOutcome;

use super::{DeliveryQueue, FAILING_THRESHOLD, LoadedDelivery};

impl DeliveryQueue {
    /// Gives up the deliveries whose retry window ended before the last failure, and queues the next one.
    pub(super) fn load_oldest(&mut self, page: Vec<LoadedDelivery>, scanned_to: i64) {
        if !self.is_failing() || !self.by_order.is_empty() {
            return;
        }
        for LoadedDelivery { mut delivery, .. } in page {
            if self.is_known(&delivery) {
                continue;
            }
            if !delivery.has_row {
                self.advance_scan(delivery.number);
                self.unsettled.insert(delivery.number);
            }
            if delivery.give_up_at <= self.last_failure_at {
                self.push_update(&delivery, DeliveryOutcome::Failed);
                continue;
            }
            let planned = if delivery.attempts > 0 {
                delivery.due_at
            } else {
                self.health.not_before
            };
            delivery.due_at = planned.min(delivery.give_up_at).max(self.earliest_retry());
            self.by_order
                .insert(delivery.order_id, BTreeMap::from([(delivery.number, delivery)]));
            self.heads.insert(delivery.number, delivery.order_id);
            return;
        }
        self.advance_scan(scanned_to);
        // Nothing is left to attempt: the next event is attempted, and one more failure makes the endpoint fail again.
        self.health.consecutive_failures = FAILING_THRESHOLD - 1;
    }

    /// Evicts what is not in flight: only the oldest delivery is attempted from now on, and the others are read again
    /// later.
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
