//! Which vouchers are free, in the order of sale. Pure.
//!
//! Rule: neighbours in a chunk that expire on the same day are one run, so that a chunk as an import forms it takes what a
//! single voucher does, and a voucher with no neighbour takes no more than it did as an entry of its own.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::ids::ChunkId;
use crate::domain::voucher::Expiry;

/// A voucher by its place: in which chunk it is, and how far from the chunk's first. The order of the fields is the order of
/// sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) expiry: Expiry,
    pub(crate) chunk_id: ChunkId,
    pub(crate) offset: u32,
}

impl Place {
    /// Where those begin that expire no earlier than `expiry`.
    const fn first_expiring(expiry: Expiry) -> Self {
        Self {
            expiry,
            chunk_id: ChunkId(i64::MIN),
            offset: 0,
        }
    }

    /// The one before it in its chunk.
    fn before(self) -> Option<Self> {
        let offset = self.offset.checked_sub(1)?;
        Some(Self { offset, ..self })
    }

    /// Whether `other` is of the same chunk and day.
    fn is_alike(self, other: Self) -> bool {
        (self.expiry, self.chunk_id) == (other.expiry, other.chunk_id)
    }
}

/// The free vouchers of a shelf.
#[derive(Debug, Clone, Default)]
pub(crate) struct Free {
    /// By its last voucher, the offset of a run's first: what is sold is the first, and that moves no entry.
    runs: BTreeMap<Place, u32>,
    count: usize,
}

impl Free {
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// All of them, in the order of sale.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Place> {
        self.runs.iter().flat_map(|(&last, &first)| places(last, first))
    }

    /// How many of `quantity` are there that expire no earlier than `not_before`, and when the last of these expires.
    pub(crate) fn reach(&self, quantity: usize, not_before: Expiry) -> (usize, Expiry) {
        let mut reached = (0, Expiry::PAST);
        for (last, first) in self.runs.range(Place::first_expiring(not_before)..) {
            if reached.0 >= quantity {
                break;
            }
            reached = (reached.0 + length(*last, *first), last.expiry);
        }
        (reached.0.min(quantity), reached.1)
    }

    /// Takes the first `quantity` out that expire no earlier than `not_before`, or what there is of them.
    pub(crate) fn take(&mut self, quantity: usize, not_before: Expiry, mut taken: impl FnMut(Place)) {
        let mut missing = quantity;
        while missing > 0 {
            let mut usable = self.runs.range_mut(Place::first_expiring(not_before)..);
            let Some((&last, first)) = usable.next() else {
                break;
            };
            let here = places(last, *first).take(missing).map(&mut taken).count();
            missing -= here;
            self.count -= here;
            match places(last, *first).nth(here) {
                Some(next) => *first = next.offset,
                None => {
                    self.runs.remove(&last);
                }
            }
        }
    }

    /// Takes all out that expire before `not_before`.
    pub(crate) fn take_lapsed(&mut self, not_before: Expiry) -> Vec<Place> {
        let mut lapsed = Vec::new();
        while let Some(run) = self.runs.first_entry() {
            if run.key().expiry >= not_before {
                break;
            }
            let (last, first) = run.remove_entry();
            lapsed.extend(places(last, first));
        }
        self.count -= lapsed.len();
        lapsed
    }

    /// Puts one in that is not there.
    pub(crate) fn put(&mut self, place: Place) {
        self.put_run(place, place.offset);
    }

    /// Puts several in that are not there; neighbours that come one after the other cost what one does.
    pub(crate) fn put_all(&mut self, places: impl Iterator<Item = Place>) {
        let mut run: Option<(Place, u32)> = None;
        for place in places {
            match &mut run {
                Some((last, _)) if place.before() == Some(*last) => *last = place,
                _ => {
                    let done = run.replace((place, place.offset));
                    done.into_iter()
                        .for_each(|(last, first)| self.put_run(last, first));
                }
            }
        }
        run.into_iter()
            .for_each(|(last, first)| self.put_run(last, first));
    }

    /// Joined with the runs that end right before it and begin right after it.
    fn put_run(&mut self, last: Place, first: u32) {
        self.count += length(last, first);
        let before = Place {
            offset: first,
            ..last
        }
        .before();
        let first = before
            .and_then(|before| self.runs.remove(&before))
            .unwrap_or(first);
        match self.begins_after(last) {
            Some(begin) => *begin = first,
            None => {
                self.runs.insert(last, first);
            }
        }
    }

    /// The first of the run that begins right after a place.
    fn begins_after(&mut self, place: Place) -> Option<&mut u32> {
        let (last, first) = self.runs.range_mut(place..).next()?;
        let adjoins = last.is_alike(place) && *first - 1 == place.offset;
        adjoins.then_some(first)
    }

    /// Takes everything of these chunks out.
    pub(crate) fn forget(&mut self, chunks: &BTreeSet<ChunkId>) {
        self.runs.retain(|last, first| {
            let stays = !chunks.contains(&last.chunk_id);
            if !stays {
                self.count -= length(*last, *first);
            }
            stays
        });
    }
}

/// The places of a run.
fn places(last: Place, first: u32) -> impl Iterator<Item = Place> {
    (first..=last.offset).map(move |offset| Place { offset, ..last })
}

const fn length(last: Place, first: u32) -> usize {
    (last.offset - first) as usize + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Two days of two chunks.
    fn place(day: usize, chunk: i64, offset: u32) -> Place {
        Place {
            expiry: [Expiry::PAST, Expiry::NEVER][day],
            chunk_id: ChunkId(chunk),
            offset,
        }
    }

    fn take(free: &mut Free, quantity: usize, not_before: Expiry) -> Vec<Place> {
        let mut taken = Vec::new();
        free.take(quantity, not_before, |place| taken.push(place));
        taken
    }

    fn full() -> Free {
        let mut free = Free::default();
        free.put_all((0..9).map(|offset| place(0, 1, offset)));
        free
    }

    #[test]
    fn neighbours_are_one_run_whatever_the_order_in_which_they_come() {
        for order in [[1, 2, 3], [3, 2, 1], [1, 3, 2]] {
            let mut free = Free::default();
            order.iter().for_each(|offset| free.put(place(0, 1, *offset)));
            assert_eq!((free.runs.len(), free.len()), (1, 3), "{order:?}");
        }
    }

    #[test]
    fn another_day_or_chunk_is_no_neighbour() {
        let mut free = full();
        free.put(place(1, 1, 9));
        free.put(place(0, 2, 9));
        assert_eq!((free.runs.len(), free.len()), (3, 11));
    }

    #[test]
    fn what_is_sold_and_comes_back_in_its_order_moves_no_entry() {
        let mut free = full();
        let taken = take(&mut free, 4, Expiry::PAST);
        assert_eq!(free.runs.len(), 1);
        taken.into_iter().rev().for_each(|place| free.put(place));
        assert_eq!((free.runs.len(), free.len()), (1, 9));
    }

    proptest! {
        /// A set of single places says the same.
        #[test]
        fn runs_are_a_set(steps in prop::collection::vec((0_u8..5, 0_usize..2, 1_i64..3, 0_u32..12), 1..200)) {
            let (mut free, mut plain) = (Free::default(), BTreeSet::new());
            for (step, day, chunk, number) in steps {
                let here = place(day, chunk, number);
                match step {
                    0 | 1 => if plain.insert(here) {
                        free.put(here);
                    },
                    2 => {
                        let several = (number..number + 5).map(|offset| Place { offset, ..here });
                        let several: Vec<Place> = several.filter(|place| plain.insert(*place)).collect();
                        free.put_all(several.into_iter());
                    },
                    3 => {
                        let quantity = number as usize;
                        let usable = plain.iter().filter(|place| place.expiry >= here.expiry);
                        let first: Vec<Place> = usable.take(quantity).copied().collect();
                        let last = first.last().map(|place| place.expiry);
                        let (reached, until) = free.reach(quantity, here.expiry);
                        prop_assert_eq!((reached, (reached > 0).then_some(until)), (first.len(), last));
                        prop_assert_eq!(&take(&mut free, quantity, here.expiry), &first);
                        first.iter().for_each(|place| { plain.remove(place); });
                    },
                    _ => {
                        let chunks = BTreeSet::from([ChunkId(chunk)]);
                        free.forget(&chunks);
                        plain.retain(|place| !chunks.contains(&place.chunk_id));
                    },
                }
                prop_assert_eq!(free.iter().collect::<Vec<_>>(), plain.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(free.len(), plain.len());
            }
        }
    }
}
