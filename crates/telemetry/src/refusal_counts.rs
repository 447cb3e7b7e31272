//! Refused requests of the last day by partner and error code, for `GET /refusals`.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::refusal_log::RefusalKey;

/// What the counts of one slot cover.
const SLOT: Duration = Duration::from_secs(600);

/// A day.
const SLOTS: u64 = 144;

/// Partners and codes of a slot that have a count of their own. Requests of further partners are counted
/// without partner.
const MAX_KEYS: usize = 1_000;

/// Counts per slot, newest last.
#[derive(Debug, Default)]
pub struct RefusalCounts(Mutex<VecDeque<Slot>>);

#[derive(Debug)]
struct Slot {
    /// Monotonic time in slots.
    number: u64,
    /// Shared with a list that adds them up: a refusal meanwhile copies the newest slot.
    counts: Arc<HashMap<RefusalKey, u64>>,
}

impl RefusalCounts {
    /// Counts a refusal at `now`, in monotonic time.
    pub fn record(&self, key: RefusalKey, now: Duration) {
        let number = slot_of(now);
        let mut slots = self.0.lock();
        // A thread that was delayed before the lock counts in the newest slot.
        if slots.back().is_none_or(|slot| slot.number < number) {
            slots.push_back(Slot {
                number,
                counts: Arc::default(),
            });
            while slots.front().is_some_and(|slot| slot.number + SLOTS <= number) {
                slots.pop_front();
            }
        }
        let Some(Slot { counts, .. }) = slots.back_mut() else {
            return;
        };
        let counts = Arc::make_mut(counts);
        let has_room = counts.len() < MAX_KEYS || counts.contains_key(&key);
        let partner_id = key.partner_id.filter(|_| has_room);
        *counts.entry(RefusalKey { partner_id, ..key }).or_default() += 1;
    }

    /// The counts of the slots that end within `period` before `now`, largest first.
    pub fn list(&self, period: Duration, now: Duration) -> Vec<(RefusalKey, u64)> {
        let first = slot_of(now.saturating_sub(period));
        let mut sums: HashMap<RefusalKey, u64> = HashMap::new();
        for counts in self.counts_since(first) {
            for (key, count) in counts.iter() {
                *sums.entry(*key).or_default() += count;
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(key, count)| (std::cmp::Reverse(*count), key.code.as_str(), key.partner_id));
        sums
    }

    /// The counts of the slots from `first`. The lock, which refused requests take, is held for a copy of
    /// pointers.
    fn counts_since(&self, first: u64) -> Vec<Arc<HashMap<RefusalKey, u64>>> {
        let slots = self.0.lock();
        let slots = slots.iter().filter(|slot| slot.number >= first);
        slots.map(|slot| Arc::clone(&slot.counts)).collect()
    }
}

const fn slot_of(at: Duration) -> u64 {
    at.as_secs() / SLOT.as_secs()
}

#[cfg(test)]
mod tests {
    use vouchsafe_domain::ids::PartnerId;
    use vouchsafe_wire::error_code::Code;

    use super::*;

    fn key(code: Code, partner_id: Option<PartnerId>) -> RefusalKey {
        RefusalKey { partner_id, code }
    }

    #[test]
    fn refusals_of_the_period_are_counted_by_partner_and_code() {
        let counts = RefusalCounts::default();
        let partner = key(Code::OrderNotFound, Some(PartnerId::generate()));
        let nobody = key(Code::InvalidCredentials, None);
        let at = Duration::from_secs;
        counts.record(partner, at(0));
        for _ in 0..3 {
            counts.record(nobody, at(86_000));
        }
        counts.record(partner, at(86_300));
        assert_eq!(counts.list(at(3_600), at(86_399)), [(nobody, 3), (partner, 1)]);
        assert_eq!(counts.list(at(86_400), at(86_399)), [(nobody, 3), (partner, 2)]);
        counts.record(nobody, at(86_400));
        assert_eq!(
            counts.list(at(100_000), at(86_400)),
            [(nobody, 4), (partner, 1)],
            "counts older than a day are dropped"
        );
    }

    /// A request is refused while a list holds the counts that it adds up: the request has the lock, and the
    /// list is as before.
    #[test]
    fn refusal_while_counts_are_added_up_is_counted() {
        let counts = RefusalCounts::default();
        let nobody = key(Code::InvalidCredentials, None);
        counts.record(nobody, Duration::ZERO);
        let listed = counts.counts_since(0);
        counts.record(nobody, Duration::ZERO);
        assert_eq!(listed[0][&nobody], 1);
        assert_eq!(counts.list(Duration::ZERO, Duration::ZERO), [(nobody, 2)]);
    }

    #[test]
    fn partners_beyond_the_limit_share_a_count() {
        let counts = RefusalCounts::default();
        for _ in 0..=MAX_KEYS {
            counts.record(
                key(Code::OrderNotFound, Some(PartnerId::generate())),
                Duration::ZERO,
            );
        }
        let listed = counts.list(Duration::ZERO, Duration::ZERO);
        assert_eq!(listed.len(), MAX_KEYS + 1);
        let without_partner = listed.iter().filter(|(key, _)| key.partner_id.is_none()).count();
        assert_eq!(without_partner, 1);
    }
}
