//! What do several figures of one thing say? Their median, how far they lie apart, and how they stand to another's.

use std::fmt;

use serde::Serialize;

/// Figures of one thing, taken one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The one in the middle, or the mean of the two in the middle.
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// How many there are.
    pub count: usize,
}

impl Spread {
    /// Of these figures; `None` if there are none.
    #[must_use]
    pub fn from_values(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self {
            median: f64::midpoint(low, high),
            min,
            max,
            count: sorted.len(),
        })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, min, max, .. } = self;
        write!(f, "{median:>9.0}  ({min:.0} to {max:.0})")
    }
}

/// How the figures of one stand to those of another, round by round: what both had of the machine's weather in a round
/// then falls out. A round in which one of them has no figure has no part in it.
#[must_use]
pub fn paired_ratios(ours: &[Option<f64>], theirs: &[Option<f64>]) -> Option<Spread> {
    let pairs = ours
        .iter()
        .zip(theirs)
        .filter_map(|(ours, theirs)| (*ours).zip(*theirs));
    Spread::from_values(
        pairs
            .filter(|(_, theirs)| *theirs > 0.0)
            .map(|(ours, theirs)| ours / theirs),
    )
}

/// Which of these is the greatest, by index; the first of equals.
#[must_use]
pub fn index_of_max(figures: &[Option<f64>]) -> Option<usize> {
    let known = figures
        .iter()
        .enumerate()
        .filter_map(|(index, figure)| Some((index, (*figure)?)));
    known
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
        .map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        for (figures, median, min, max) in [
            (&[5.0][..], 5.0, 5.0, 5.0),
            (&[3.0, 1.0], 2.0, 1.0, 3.0),
            (&[9.0, 1.0, 2.0], 2.0, 1.0, 9.0),
            (&[4.0, 1.0, 3.0, 9.0], 3.5, 1.0, 9.0),
        ] {
            let spread = Spread::from_values(figures.iter().copied()).unwrap();
            let expected = Spread {
                median,
                min,
                max,
                count: figures.len(),
            };
            assert_eq!(spread, expected);
        }
        assert_eq!(Spread::from_values([]), None);
    }

    #[test]
    fn a_ratio_is_taken_within_each_round() {
        // The machine was twice as fast in the second round: the ratio does not move.
        let spread = paired_ratios(&[Some(400.0), Some(800.0)], &[Some(100.0), Some(200.0)]).unwrap();
        assert_eq!((spread.median, spread.min, spread.max), (4.0, 4.0, 4.0));
        let one = paired_ratios(&[Some(400.0), None, Some(1.0)], &[Some(100.0), Some(1.0), None]).unwrap();
        assert_eq!((one.median, one.count), (4.0, 1));
        assert_eq!(paired_ratios(&[Some(1.0)], &[Some(0.0)]), None);
    }

    #[test]
    fn the_best_is_the_greatest_that_counts() {
        for (figures, expected) in [
            (&[][..], None),
            (&[None, None], None),
            (&[Some(1.0), None, Some(3.0), Some(2.0)], Some(2)),
            (&[Some(2.0), Some(2.0)], Some(0)),
        ] {
            assert_eq!(index_of_max(figures), expected);
        }
    }
}
