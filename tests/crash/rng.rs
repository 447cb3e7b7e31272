//! Seeded random number generator (SplitMix64). The same seed gives the same plan, though not the same races.

#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns an independent generator.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut state = self.0;
        state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        state ^ (state >> 31)
    }

    /// Returns a number from `from` to `to`, both included.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        assert!(from <= to, "from must not exceed to");
        from + self.next() % (to - from + 1)
    }

    /// Returns true with this probability.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.between(0, 99) < percent
    }

    /// Returns a random element, `None` if there is none.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let last = items.len().checked_sub(1)? as u64;
        items.get(usize::try_from(self.between(0, last)).ok()?)
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            let other = usize::try_from(self.between(0, end as u64)).unwrap();
            items.swap(end, other);
        }
    }
}
