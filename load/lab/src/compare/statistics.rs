//! Statistics of repeated measurements: median, range, and ratios of paired values.

use std::fmt;

use serde::Serialize;

/// Median and range of repeated measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    /// Middle value, or mean of the two middle values.
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub count: usize,
}

impl Spread {
    /// `None` without values.
    pub(crate) fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
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

/// Ratios within rounds, which cancel the speed of the machine in each round. Omits rounds with a missing value.
pub(crate) fn paired_ratios(numerators: &[Option<f64>], denominators: &[Option<f64>]) -> Option<Spread> {
    let pairs = numerators
        .iter()
        .zip(denominators)
        .filter_map(|(numerator, denominator)| (*numerator).zip(*denominator));
    Spread::from_values(
        pairs
            .filter(|(_, denominator)| *denominator > 0.0)
            .map(|(numerator, denominator)| numerator / denominator),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_middle_value() {
        for (values, median, min, max) in [
            (&[5.0][..], 5.0, 5.0, 5.0),
            (&[3.0, 1.0], 2.0, 1.0, 3.0),
            (&[9.0, 1.0, 2.0], 2.0, 1.0, 9.0),
            (&[4.0, 1.0, 3.0, 9.0], 3.5, 1.0, 9.0),
        ] {
            let spread = Spread::from_values(values.iter().copied()).unwrap();
            let expected = Spread {
                median,
                min,
                max,
                count: values.len(),
            };
            assert_eq!(spread, expected);
        }
        assert_eq!(Spread::from_values([]), None);
    }

    #[test]
    fn ratio_is_taken_within_rounds() {
        // The machine is twice as fast in the second round: the ratio is the same.
        let spread = paired_ratios(&[Some(400.0), Some(800.0)], &[Some(100.0), Some(200.0)]).unwrap();
        assert_eq!((spread.median, spread.min, spread.max), (4.0, 4.0, 4.0));
        let one = paired_ratios(&[Some(400.0), None, Some(1.0)], &[Some(100.0), Some(1.0), None]).unwrap();
        assert_eq!((one.median, one.count), (4.0, 1));
        assert_eq!(paired_ratios(&[Some(1.0)], &[Some(0.0)]), None);
    }
}
