//! Fair purchase queue of one vendor: an order with a hundred lines does not delay one with a single line.
//! Pure.
//!
//! The order with the fewest purchases in flight is next; among equals the one served least recently, then
//! the one queued first.

use std::collections::{HashMap, HashSet, VecDeque};

use vouchsafe_domain::ids::OrderId;

/// Maximum number of queued purchases, many times a vendor's concurrency; what is due beyond it follows when
/// few of them are left. Orders compete for their turns among these.
pub const MAX_QUEUED: usize = 512;

/// Below this number of queued purchases more are read, so that one that is due later has its turn soon.
const LOW_WATER: usize = 128;

/// The due and in-flight purchases of one vendor; `P` identifies a purchase.
#[derive(Debug)]
pub struct PurchaseQueue<P> {
    waiting: VecDeque<(P, OrderId)>,
    in_flight: HashMap<P, OrderId>,
    /// When an order was last served, while it has purchases here.
    last_turns: HashMap<OrderId, u64>,
    turns_given: u64,
}

impl<P> Default for PurchaseQueue<P> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            in_flight: HashMap::new(),
            last_turns: HashMap::new(),
            turns_given: 0,
        }
    }
}

impl<P: Copy + Eq + std::hash::Hash> PurchaseQueue<P> {
    /// Replaces the due purchases. Leaves out those in flight and those beyond [`MAX_QUEUED`].
    pub fn replace_due(&mut self, due: impl IntoIterator<Item = (P, OrderId)>) {
        let fresh = due
            .into_iter()
            .filter(|(purchase, _)| !self.in_flight.contains_key(purchase));
        self.waiting = fresh.take(MAX_QUEUED).collect();
        self.prune_turns();
    }

    /// Whether so few purchases are left that more may be read.
    #[must_use]
    pub fn is_low(&self) -> bool {
        self.waiting.len() < LOW_WATER
    }

    /// Returns the next purchase and marks it as in flight, if fewer than `limit` are in flight.
    pub fn start_next(&mut self, limit: usize) -> Option<P> {
        if self.in_flight.len() >= limit {
            return None;
        }
        let mut busy: HashMap<OrderId, usize> = HashMap::new();
        for order_id in self.in_flight.values() {
            *busy.entry(*order_id).or_default() += 1;
        }
        let rank = |order_id: &OrderId| {
            let last_turn = self.last_turns.get(order_id).copied().unwrap_or_default();
            (busy.get(order_id).copied().unwrap_or_default(), last_turn)
        };
        let ranked = self.waiting.iter().enumerate();
        let (index, _) = ranked.min_by_key(|(index, (_, order_id))| (rank(order_id), *index))?;
        let (purchase, order_id) = self.waiting.remove(index)?;
        self.turns_given += 1;
        self.last_turns.insert(order_id, self.turns_given);
        self.in_flight.insert(purchase, order_id);
        Some(purchase)
    }

    /// Marks a purchase as no longer in flight.
    pub fn finish(&mut self, purchase: P) {
        self.in_flight.remove(&purchase);
        self.prune_turns();
    }

    /// The number of purchases in flight.
    #[must_use]
    pub fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }

    fn prune_turns(&mut self) {
        let waiting = self.waiting.iter().map(|(_, order_id)| *order_id);
        let present: HashSet<OrderId> = waiting.chain(self.in_flight.values().copied()).collect();
        self.last_turns.retain(|order_id, _| present.contains(order_id));
    }
}

#[cfg(test)]
mod tests;
