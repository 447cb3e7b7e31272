//! Weighted sampling: cumulative sums with binary search.

use rand::RngExt as _;
use rand::rngs::StdRng;

/// Weights of a discrete distribution.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weights {
    /// Cumulative sums; the last one is the total.
    sums: Vec<f64>,
}

impl Weights {
    /// `None` if no weight is positive, or one is negative or not finite.
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

    pub(crate) fn uniform(count: usize) -> Option<Self> {
        Self::new(std::iter::repeat_n(1.0, count))
    }

    /// Zipf distribution: the n-th weight is 1/n to the power of `exponent`.
    pub(crate) fn zipf(count: usize, exponent: f64) -> Option<Self> {
        Self::new((1..=count).map(|rank| (rank as f64).powf(-exponent)))
    }

    /// Probability of an index, from 0 to 1.
    pub(crate) fn share(&self, index: usize) -> f64 {
        let previous = index.checked_sub(1).map_or(0.0, |previous| self.sums[previous]);
        let total = self.sums.last().copied().unwrap_or_default();
        (self.sums[index] - previous) / total
    }

    pub(crate) fn draw(&self, rng: &mut StdRng) -> usize {
        let total = self.sums.last().copied().unwrap_or_default();
        let point = rng.random_range(0.0..total);
        self.sums
            .partition_point(|sum| *sum <= point)
            .min(self.sums.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    fn draw_counts(weights: &Weights) -> [u32; 4] {
        let mut rng = StdRng::seed_from_u64(7);
        let mut counts = [0; 4];
        for _ in 0..10_000 {
            counts[weights.draw(&mut rng)] += 1;
        }
        counts
    }

    #[test]
    fn draws_follow_weights() {
        let counts = draw_counts(&Weights::new([1.0, 0.0, 3.0, 0.0]).unwrap());
        assert_eq!((counts[1], counts[3]), (0, 0));
        assert!((2_300..2_700).contains(&counts[0]), "{counts:?}");
        let even = draw_counts(&Weights::uniform(4).unwrap());
        assert!(
            even.iter().all(|count| (2_300..2_700).contains(count)),
            "{even:?}"
        );
        // Weights 1, 1/2, 1/3, 1/4 with the sum 25/12.
        let steep = draw_counts(&Weights::zipf(4, 1.0).unwrap());
        assert!(
            (4_600..5_000).contains(&steep[0]) && (1_000..1_400).contains(&steep[3]),
            "{steep:?}"
        );
    }

    #[test]
    fn share_is_relative_to_total() {
        let weights = Weights::new([1.0, 0.0, 3.0]).unwrap();
        assert_eq!([0, 1, 2].map(|index| weights.share(index)), [0.25, 0.0, 0.75]);
    }

    #[test]
    fn same_seed_draws_same_indexes() {
        let weights = Weights::zipf(4, 1.2).unwrap();
        assert_eq!(draw_counts(&weights), draw_counts(&weights));
    }

    #[test]
    fn weights_without_positive_value_are_none() {
        assert_eq!(Weights::new([]), None);
        assert_eq!(Weights::new([0.0, 0.0]), None);
        assert_eq!(Weights::new([1.0, -1.0]), None);
        assert_eq!(Weights::new([f64::NAN]), None);
    }
}
