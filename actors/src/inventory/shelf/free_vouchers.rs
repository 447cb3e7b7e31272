//! Free vouchers of a shelf, stored as runs in the order of sale. Pure.
//!
//! Neighbours in a chunk with the same expiry form one run, so a chunk from one import takes as much memory
//! as a single voucher, and an isolated voucher takes no more than an entry of its own.

use std::collections::{BTreeMap, BTreeSet};

use vouchsafe_domain::ids::ChunkId;
use vouchsafe_domain::voucher::Expiry;

/// A voucher's position: its chunk and its offset from the chunk's first voucher. The field order is the
/// order of sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VoucherPosition {
    pub(crate) expiry: Expiry,
    pub(crate) chunk_id: ChunkId,
    pub(crate) offset: u32,
}

impl VoucherPosition {
    /// The lowest position with this expiry.
    const fn first_expiring(expiry: Expiry) -> Self {
        Self {
            expiry,
            chunk_id: ChunkId(i64::MIN),
            offset: 0,
        }
    }

    /// The preceding position in the chunk.
    fn previous(self) -> Option<Self> {
        let offset = self.offset.checked_sub(1)?;
        Some(Self { offset, ..self })
    }

    /// Whether `other` has the same chunk and expiry.
    fn is_same_run(self, other: Self) -> bool {
        (self.expiry, self.chunk_id) == (other.expiry, other.chunk_id)
    }
}

/// The free vouchers of a shelf.
#[derive(Debug, Clone, Default)]
pub(crate) struct FreeVouchers {
    /// Maps the last position of a run to the offset of its first: vouchers are sold from the front, which
    /// changes no key.
    runs: BTreeMap<VoucherPosition, u32>,
    count: usize,
}

impl FreeVouchers {
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// All positions in the order of sale.
    pub(crate) fn iter(&self) -> impl Iterator<Item = VoucherPosition> {
        self.runs
            .iter()
            .flat_map(|(&last, &first)| positions(last, first))
    }

    /// The chunks of the runs, the last to be sold first. A chunk with several runs occurs several times.
    pub(crate) fn chunks_last_first(&self) -> impl Iterator<Item = ChunkId> {
        self.runs.keys().rev().map(|last| last.chunk_id)
    }

    /// The number of vouchers, up to `quantity`, that expire no earlier than `not_before`, and the latest
    /// expiry among them.
    pub(crate) fn count_usable(&self, quantity: usize, not_before: Expiry) -> (usize, Expiry) {
        let mut reached = (0, Expiry::PAST);
        for (last, first) in self.runs.range(VoucherPosition::first_expiring(not_before)..) {
            if reached.0 >= quantity {
                break;
            }
            reached = (reached.0 + run_length(*last, *first), last.expiry);
        }
        (reached.0.min(quantity), reached.1)
    }

    /// Removes the first `quantity` vouchers that expire no earlier than `not_before`, or as many as there
    /// are.
    pub(crate) fn take(
        &mut self,
        quantity: usize,
        not_before: Expiry,
        mut visit: impl FnMut(VoucherPosition),
    ) {
        let mut remaining = quantity;
        while remaining > 0 {
            let mut usable = self.runs.range_mut(VoucherPosition::first_expiring(not_before)..);
            let Some((&last, first)) = usable.next() else {
                break;
            };
            let here = positions(last, *first).take(remaining).map(&mut visit).count();
            remaining -= here;
            self.count -= here;
            match positions(last, *first).nth(here) {
                Some(next) => *first = next.offset,
                None => {
                    self.runs.remove(&last);
                }
            }
        }
    }

    /// Removes all vouchers that expire before `not_before`.
    pub(crate) fn take_expired(&mut self, not_before: Expiry) -> Vec<VoucherPosition> {
        let mut expired = Vec::new();
        while let Some(run) = self.runs.first_entry() {
            if run.key().expiry >= not_before {
                break;
            }
            let (last, first) = run.remove_entry();
            expired.extend(positions(last, first));
        }
        self.count -= expired.len();
        expired
    }

    /// Inserts a voucher that is not present.
    pub(crate) fn insert(&mut self, position: VoucherPosition) {
        self.insert_run(position, position.offset);
    }

    /// Inserts vouchers that are not present; consecutive neighbours cost one insertion.
    pub(crate) fn insert_all(&mut self, positions: impl Iterator<Item = VoucherPosition>) {
        let mut run: Option<(VoucherPosition, u32)> = None;
        for position in positions {
            match &mut run {
                Some((last, _)) if position.previous() == Some(*last) => *last = position,
                _ => {
                    let done = run.replace((position, position.offset));
                    done.into_iter()
                        .for_each(|(last, first)| self.insert_run(last, first));
                }
            }
        }
        run.into_iter()
            .for_each(|(last, first)| self.insert_run(last, first));
    }

    /// Inserts a run and joins it with adjacent runs.
    fn insert_run(&mut self, last: VoucherPosition, first: u32) {
        self.count += run_length(last, first);
        let before = VoucherPosition {
            offset: first,
            ..last
        }
        .previous();
        let first = before
            .and_then(|before| self.runs.remove(&before))
            .unwrap_or(first);
        match self.run_after(last) {
            Some(begin) => *begin = first,
            None => {
                self.runs.insert(last, first);
            }
        }
    }

    /// The first offset of the run that starts right after a position.
    fn run_after(&mut self, position: VoucherPosition) -> Option<&mut u32> {
        let (last, first) = self.runs.range_mut(position..).next()?;
        if !last.is_same_run(position) {
            return None;
        }
        assert!(
            *first > position.offset,
            "a voucher that is free already was freed"
        );
        (*first - 1 == position.offset).then_some(first)
    }

    /// Removes all vouchers of these chunks.
    pub(crate) fn remove_chunks(&mut self, chunks: &BTreeSet<ChunkId>) {
        self.runs.retain(|last, first| {
            let is_kept = !chunks.contains(&last.chunk_id);
            if !is_kept {
                self.count -= run_length(*last, *first);
            }
            is_kept
        });
    }
}

/// The positions of a run.
fn positions(last: VoucherPosition, first: u32) -> impl Iterator<Item = VoucherPosition> {
    (first..=last.offset).map(move |offset| VoucherPosition { offset, ..last })
}

const fn run_length(last: VoucherPosition, first: u32) -> usize {
    (last.offset - first) as usize + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A position with one of two expiries.
    fn position(day: usize, chunk: i64, offset: u32) -> VoucherPosition {
        VoucherPosition {
            expiry: [Expiry::PAST, Expiry::NEVER][day],
            chunk_id: ChunkId(chunk),
            offset,
        }
    }

    fn take(free: &mut FreeVouchers, quantity: usize, not_before: Expiry) -> Vec<VoucherPosition> {
        let mut taken = Vec::new();
        free.take(quantity, not_before, |position| taken.push(position));
        taken
    }

    fn full() -> FreeVouchers {
        let mut free = FreeVouchers::default();
        free.insert_all((0..9).map(|offset| position(0, 1, offset)));
        free
    }

    #[test]
    fn neighbours_form_one_run_in_any_insertion_order() {
        for order in [[1, 2, 3], [3, 2, 1], [1, 3, 2]] {
            let mut free = FreeVouchers::default();
            order
                .iter()
                .for_each(|offset| free.insert(position(0, 1, *offset)));
            assert_eq!((free.runs.len(), free.len()), (1, 3), "{order:?}");
        }
    }

    #[test]
    fn other_expiry_or_chunk_starts_a_new_run() {
        let mut free = full();
        free.insert(position(1, 1, 9));
        free.insert(position(0, 2, 9));
        assert_eq!((free.runs.len(), free.len()), (3, 11));
    }

    #[test]
    fn sale_and_return_in_order_changes_no_key() {
        let mut free = full();
        let taken = take(&mut free, 4, Expiry::PAST);
        assert_eq!(free.runs.len(), 1);
        taken.into_iter().rev().for_each(|position| free.insert(position));
        assert_eq!((free.runs.len(), free.len()), (1, 9));
    }

    #[test]
    #[should_panic(expected = "free already")]
    fn voucher_is_not_free_twice() {
        full().insert(position(0, 1, 4));
    }

    proptest! {
        /// Compares runs with a set of single positions.
        #[test]
        fn runs_behave_like_a_set(steps in prop::collection::vec((0_u8..5, 0_usize..2, 1_i64..3, 0_u32..12), 1..200)) {
            let (mut free, mut plain) = (FreeVouchers::default(), BTreeSet::new());
            for (step, day, chunk, number) in steps {
                let here = position(day, chunk, number);
                match step {
                    0 | 1 => if plain.insert(here) {
                        free.insert(here);
                    },
                    2 => {
                        let several = (number..number + 5).map(|offset| VoucherPosition { offset, ..here });
                        let several: Vec<VoucherPosition> = several.filter(|position| plain.insert(*position)).collect();
                        free.insert_all(several.into_iter());
                    },
                    3 => {
                        let quantity = number as usize;
                        let usable = plain.iter().filter(|position| position.expiry >= here.expiry);
                        let first: Vec<VoucherPosition> = usable.take(quantity).copied().collect();
                        let last = first.last().map(|position| position.expiry);
                        let (reached, until) = free.count_usable(quantity, here.expiry);
                        prop_assert_eq!((reached, (reached > 0).then_some(until)), (first.len(), last));
                        prop_assert_eq!(&take(&mut free, quantity, here.expiry), &first);
                        first.iter().for_each(|position| { plain.remove(position); });
                    },
                    _ => {
                        let chunks = BTreeSet::from([ChunkId(chunk)]);
                        free.remove_chunks(&chunks);
                        plain.retain(|position| !chunks.contains(&position.chunk_id));
                    },
                }
                prop_assert_eq!(free.iter().collect::<Vec<_>>(), plain.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(free.len(), plain.len());
            }
        }
    }
}
