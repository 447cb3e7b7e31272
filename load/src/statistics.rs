//! Statistics of repeated measurements: median, range, ratios of paired values, and the confidence interval
//! of their mean.

use serde::Serialize;

/// Median and range of repeated measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Middle value, or mean of the two middle values.
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub count: usize,
}

impl Spread {
    /// `None` without values.
    #[must_use]
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
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

/// Ratios within rounds, which cancel the speed of the machine in each round. Omits rounds with a missing
/// value.
fn ratios<'a>(
    numerators: &'a [Option<f64>],
    denominators: &'a [Option<f64>],
) -> impl Iterator<Item = f64> + 'a {
    let pairs = numerators
        .iter()
        .zip(denominators)
        .filter_map(|(numerator, denominator)| (*numerator).zip(*denominator));
    pairs
        .filter(|(_, denominator)| *denominator > 0.0)
        .map(|(numerator, denominator)| numerator / denominator)
}

/// Mean ratio of paired values with its confidence interval: Student's t interval of the mean logarithm, so
/// that a ratio and its inverse are equally far from 1. Each interval has 98.75 %, so that the four figures
/// of a comparison have 95 % together: with 95 % each, one of six comparisons of a program with itself would
/// show a difference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanRatio {
    /// Geometric mean.
    pub mean: f64,
    pub low: f64,
    pub high: f64,
    /// Range of the ratios.
    pub min: f64,
    pub max: f64,
    pub count: usize,
}

impl MeanRatio {
    /// `None` with fewer than two ratios above 0: they have no interval.
    #[must_use]
    pub fn from_pairs(numerators: &[Option<f64>], denominators: &[Option<f64>]) -> Option<Self> {
        let ratios: Vec<_> = ratios(numerators, denominators)
            .filter(|ratio| *ratio > 0.0)
            .collect();
        let Spread { min, max, count, .. } = Spread::from_values(ratios.iter().copied())?;
        if count < 2 {
            return None;
        }
        let logarithms: Vec<_> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let n = count as f64;
        let mean = logarithms.iter().sum::<f64>() / n;
        let squares: f64 = logarithms.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (n - 1.0) / n).sqrt() * t_quantile(count - 1);
        Some(Self {
            mean: mean.exp(),
            low: (mean - error).exp(),
            high: (mean + error).exp(),
            min,
            max,
            count,
        })
    }
}

/// 99.375 % quantiles of Student's t distribution for 1 to 30 degrees of freedom.
const T_QUANTILES: [f64; 30] = [
    50.923, 8.860, 5.392, 4.315, 3.810, 3.521, 3.335, 3.206, 3.111, 3.038, 2.981, 2.934, 2.896, 2.864, 2.837,
    2.813, 2.793, 2.775, 2.759, 2.744, 2.732, 2.720, 2.710, 2.700, 2.692, 2.684, 2.676, 2.669, 2.663, 2.657,
];

/// The last quantile is an upper bound for more degrees of freedom.
fn t_quantile(degrees_of_freedom: usize) -> f64 {
    let index = degrees_of_freedom.clamp(1, T_QUANTILES.len()) - 1;
    T_QUANTILES[index]
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
    fn mean_ratio_has_an_interval_that_narrows_with_rounds() {
        let some = |values: &[f64]| values.iter().map(|value| Some(*value)).collect::<Vec<_>>();
        let ones = |count| vec![Some(1.0); count];
        assert_eq!(MeanRatio::from_pairs(&some(&[2.0]), &ones(1)), None);
        let two = MeanRatio::from_pairs(&some(&[2.0, 0.5]), &ones(2)).unwrap();
        assert!((two.mean - 1.0).abs() < 1e-12, "{two:?}");
        // The logarithms are ±ln 2: their standard error is ln 2, and t is 50.923.
        assert!((two.high.ln() - 50.923 * 2_f64.ln()).abs() < 1e-9, "{two:?}");
        assert!((two.high * two.low - 1.0).abs() < 1e-9, "{two:?}");
        assert_eq!((two.min, two.max, two.count), (0.5, 2.0, 2));
        let ten = MeanRatio::from_pairs(
            &some(&[1.1, 1.12, 1.08, 1.1, 1.09, 1.11, 1.1, 1.1, 1.1, 1.1]),
            &ones(10),
        )
        .unwrap();
        assert!(1.08 < ten.low && ten.high < 1.12, "{ten:?}");
        let numerators = [Some(8.0), None, Some(1.0), Some(4.0), Some(1.0)];
        let denominators = [Some(2.0), Some(1.0), None, Some(1.0), Some(0.0)];
        let four = MeanRatio::from_pairs(&numerators, &denominators).unwrap();
        assert_eq!(
            (four.count, four.min, four.max),
            (2, 4.0, 4.0),
            "missing values and 0 are left out"
        );
    }
}
