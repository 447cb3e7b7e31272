//! Which purchase of a vendor is asked about next? Fair between orders: one with a hundred lines does not hold up another
//! with a single one. Pure.
//!
//! Rule: of the orders with something due, the one with the fewest purchases under way has the next turn; of equal ones,
//! the one whose last turn is longest ago, and of those that had none the one that was offered first.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::domain::ids::OrderId;

/// How many purchases wait here at most: what is due beyond that is offered again. Many times what may be under way with
/// one vendor.
pub const MAX_WAITING: usize = 512;

/// The purchases of one vendor that are due or under way; `P` names one.
#[derive(Debug)]
pub struct Queue<P> {
    waiting: VecDeque<(P, OrderId)>,
    under_way: HashMap<P, OrderId>,
    /// When an order had its last turn, as long as it has something here.
    turns: HashMap<OrderId, u64>,
    turns_given: u64,
}

impl<P> Default for Queue<P> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            under_way: HashMap::new(),
            turns: HashMap::new(),
            turns_given: 0,
        }
    }
}

impl<P: Copy + Eq + std::hash::Hash> Queue<P> {
    /// What is due now, in place of what was due before. What is under way is left out, and what there is no room for.
    pub fn offer(&mut self, due: impl IntoIterator<Item = (P, OrderId)>) {
        let fresh = due
            .into_iter()
            .filter(|(purchase, _)| !self.under_way.contains_key(purchase));
        self.waiting = fresh.take(MAX_WAITING).collect();
        self.forget_turns();
    }

    /// The next purchase, if fewer than `most` are under way; it is under way from here on.
    pub fn next(&mut self, most: usize) -> Option<P> {
        if self.under_way.len() >= most {
            return None;
        }
        let mut busy: HashMap<OrderId, usize> = HashMap::new();
        for order_id in self.under_way.values() {
            *busy.entry(*order_id).or_default() += 1;
        }
        let rank = |order_id: &OrderId| {
            let last_turn = self.turns.get(order_id).copied().unwrap_or_default();
            (busy.get(order_id).copied().unwrap_or_default(), last_turn)
        };
        let ranked = self.waiting.iter().enumerate();
        let (place, _) = ranked.min_by_key(|(place, (_, order_id))| (rank(order_id), *place))?;
        let (purchase, order_id) = self.waiting.remove(place)?;
        self.turns_given += 1;
        self.turns.insert(order_id, self.turns_given);
        self.under_way.insert(purchase, order_id);
        Some(purchase)
    }

    /// A purchase is not under way any more.
    pub fn done(&mut self, purchase: P) {
        self.under_way.remove(&purchase);
        self.forget_turns();
    }

    /// How many are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    fn forget_turns(&mut self) {
        let waiting = self.waiting.iter().map(|(_, order_id)| *order_id);
        let present: HashSet<OrderId> = waiting.chain(self.under_way.values().copied()).collect();
        self.turns.retain(|order_id, _| present.contains(order_id));
    }
}

#[cfg(test)]
mod tests;
