//! Which of several is next, when some come up more often than others? A table of running sums, and a search in it.

use rand::RngExt as _;
use rand::rngs::StdRng;

/// How often each of several comes up.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weights {
    /// Running sums; the last is the whole.
    sums: Vec<f64>,
}

impl Weights {
    /// One weight each. `None` if none is above zero, or one is below it or no number.
    pub(crate) fn new(weights: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sum = 0.0;
        let mut sums = Vec::new();
        for weight in weights {
            if !weight.is_finite() || weight < 0.0 {
                return None;
            }
            sum += weight;
            sums.push(sum);
        }
        (sum > 0.0).then_some(Self { sums })
    }

    /// All alike.
    pub(crate) fn uniform(count: usize) -> Option<Self> {
        Self::new(std::iter::repeat_n(1.0, count))
    }

    /// The n-th comes up as often as 1/n to this power: what a few buy all the time, and many now and then.
    pub(crate) fn zipf(count: usize, exponent: f64) -> Option<Self> {
        Self::new((1..=count).map(|rank| (rank as f64).powf(-exponent)))
    }

    /// How often this one comes up, from 0 to 1.
    pub(crate) fn share(&self, index: usize) -> f64 {
        let before = index.checked_sub(1).map_or(0.0, |before| self.sums[before]);
        let whole = self.sums.last().copied().unwrap_or_default();
        (self.sums[index] - before) / whole
    }

    /// The next one's index.
    pub(crate) fn draw(&self, chance: &mut StdRng) -> usize {
        let whole = self.sums.last().copied().unwrap_or_default();
        let point = chance.random_range(0.0..whole);
        self.sums
            .partition_point(|sum| *sum <= point)
            .min(self.sums.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;

    fn drawn(weights: &Weights) -> [u32; 4] {
        let mut chance = StdRng::seed_from_u64(7);
        let mut counts = [0; 4];
        for _ in 0..10_000 {
            counts[weights.draw(&mut chance)] += 1;
        }
        counts
    }

    #[test]
    fn each_comes_up_by_its_weight() {
        let counts = drawn(&Weights::new([1.0, 0.0, 3.0, 0.0]).unwrap());
        assert_eq!((counts[1], counts[3]), (0, 0));
        assert!((2_300..2_700).contains(&counts[0]), "{counts:?}");
        let even = drawn(&Weights::uniform(4).unwrap());
        assert!(
            even.iter().all(|count| (2_300..2_700).contains(count)),
            "{even:?}"
        );
        // 1, 1/2, 1/3, 1/4 of 25/12.
        let steep = drawn(&Weights::zipf(4, 1.0).unwrap());
        assert!(
            (4_600..5_000).contains(&steep[0]) && (1_000..1_400).contains(&steep[3]),
            "{steep:?}"
        );
    }

    #[test]
    fn a_share_is_of_the_whole() {
        let weights = Weights::new([1.0, 0.0, 3.0]).unwrap();
        assert_eq!([0, 1, 2].map(|index| weights.share(index)), [0.25, 0.0, 0.75]);
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let weights = Weights::zipf(4, 1.2).unwrap();
        assert_eq!(drawn(&weights), drawn(&weights));
    }

    #[test]
    fn nothing_can_be_drawn_from_nothing() {
        assert_eq!(Weights::new([]), None);
        assert_eq!(Weights::new([0.0, 0.0]), None);
        assert_eq!(Weights::new([1.0, -1.0]), None);
        assert_eq!(Weights::new([f64::NAN]), None);
    }
}
