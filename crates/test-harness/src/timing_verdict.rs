//! Verdict on timing differences between kinds of requests: Welch's t-test per round, combined over the
//! rounds.

use std::fmt;
use std::process::ExitCode;

/// A combined statistic beyond it is a difference: chance reaches it once in 150,000 comparisons.
const THRESHOLD: f64 = 4.5;

/// Number of the five rounds in which a difference must be visible, if weakly. Other load rarely lasts for so
/// many rounds.
const AGREEING_ROUNDS: usize = 4;

/// What a round shows weakly: chance reaches it in one of six rounds.
const WEAK_T: f64 = 1.0;

/// Requests above this percentile of both kinds together are disturbances by the machine.
const OUTLIER_PERCENTILE: usize = 95;

/// Two kinds in one round.
#[derive(Debug, Clone, Copy)]
pub struct Comparison {
    t: f64,
    /// Mean of the first kind minus mean of the second, in nanoseconds.
    difference_ns: f64,
    /// Variance of the difference.
    variance: f64,
}

impl Comparison {
    /// Compares durations in nanoseconds.
    pub fn of(first: &[f64], second: &[f64]) -> Self {
        let bound = percentile(&[first, second].concat(), OUTLIER_PERCENTILE);
        let ((mean, variance), (other_mean, other_variance)) =
            (mean_below(first, bound), mean_below(second, bound));
        let (difference_ns, variance) = (mean - other_mean, variance + other_variance);
        Self {
            t: difference_ns / variance.sqrt(),
            difference_ns,
            variance,
        }
    }
}

fn percentile(samples: &[f64], percent: usize) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[(sorted.len() - 1) * percent / 100]
}

/// Mean of the samples up to the bound, and the variance of this mean.
#[allow(clippy::cast_precision_loss)] // counts stay far below 2^52
fn mean_below(samples: &[f64], bound: f64) -> (f64, f64) {
    let kept: Vec<f64> = samples
        .iter()
        .copied()
        .filter(|sample| *sample <= bound)
        .collect();
    let count = kept.len() as f64;
    let mean = kept.iter().sum::<f64>() / count;
    let squares = kept.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
    (mean, squares / (count - 1.0) / count)
}

/// What a pair of kinds is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// A difference is a side channel, from this number of nanoseconds.
    Tested { relevant_ns: u32 },
    /// A difference shows that the measurement is wrong.
    Equal,
    /// No difference shows that the measurement is too coarse.
    Different,
}

impl Expectation {
    fn relevant_ns(self) -> f64 {
        match self {
            Self::Tested { relevant_ns } => relevant_ns.into(),
            Self::Equal | Self::Different => 0.0,
        }
    }
}

/// Two kinds over all rounds.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    expectation: Expectation,
    /// Sum of the rounds' t, divided by the root of their number: normally distributed if there is no
    /// difference.
    z: f64,
    difference_ns: f64,
    /// The smallest difference that these rounds would have found.
    detectable_ns: f64,
    is_different: bool,
    /// A difference was found that does not count.
    is_irrelevant: bool,
}

impl Pair {
    #[allow(clippy::cast_precision_loss)] // few rounds
    pub fn of(expectation: Expectation, rounds: &[Comparison]) -> Self {
        let count = rounds.len() as f64;
        let sum = |value: fn(&Comparison) -> f64| rounds.iter().map(value).sum::<f64>();
        let z = sum(|round| round.t) / count.sqrt();
        let difference_ns = sum(|round| round.difference_ns) / count;
        let agreeing = rounds
            .iter()
            .filter(|round| round.t * z.signum() > WEAK_T)
            .count();
        let is_found = z.abs() >= THRESHOLD && agreeing >= AGREEING_ROUNDS;
        let is_relevant = difference_ns.abs() >= expectation.relevant_ns();
        Self {
            expectation,
            z,
            difference_ns,
            detectable_ns: THRESHOLD * (sum(|round| round.variance) / count).sqrt() / count.sqrt(),
            is_different: is_found && is_relevant,
            is_irrelevant: is_found && !is_relevant,
        }
    }

    /// Whether the rounds could not have found a difference that counts.
    fn is_too_coarse(&self) -> bool {
        matches!(self.expectation, Expectation::Tested { .. })
            && !self.is_different
            && self.detectable_ns > self.expectation.relevant_ns()
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "difference {:8.1} ns, z {:7.2}, detectable from {:6.1} ns: {}",
            self.difference_ns,
            self.z,
            self.detectable_ns,
            if self.is_different {
                "different"
            } else if self.is_irrelevant {
                "below the relevant difference"
            } else if self.is_too_coarse() {
                "too coarse to tell"
            } else {
                "no difference"
            }
        )
    }
}

/// The result for one way of measuring. Later ones are worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    NoDifference,
    /// A control failed, or a difference that counts would not have been found: the machine was too busy.
    Inconclusive,
    SideChannel,
}

impl Verdict {
    pub fn of(pairs: &[Pair]) -> Self {
        let is_failed_control = |pair: &Pair| match pair.expectation {
            Expectation::Equal => pair.is_different,
            Expectation::Different => !pair.is_different,
            Expectation::Tested { .. } => false,
        };
        let is_leak =
            |pair: &Pair| matches!(pair.expectation, Expectation::Tested { .. }) && pair.is_different;
        // After a failed control, the other results are worth nothing.
        if pairs.iter().any(is_failed_control) {
            Self::Inconclusive
        } else if pairs.iter().any(is_leak) {
            Self::SideChannel
        } else if pairs.iter().any(Pair::is_too_coarse) {
            Self::Inconclusive
        } else {
            Self::NoDifference
        }
    }

    pub fn worst<const N: usize>(verdicts: [Self; N]) -> Self {
        verdicts.into_iter().max().unwrap_or(Self::Inconclusive)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoDifference => "no relevant difference found",
            Self::SideChannel => "SIDE CHANNEL: the time of a refusal depends on the guess",
            Self::Inconclusive => {
                "inconclusive: a control failed or the measurement is too coarse, repeat on an idle machine"
            }
        })
    }
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::NoDifference => Self::SUCCESS,
            Verdict::SideChannel => Self::from(1),
            Verdict::Inconclusive => Self::from(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTED: Expectation = Expectation::Tested { relevant_ns: 2 };

    /// Durations around 1,000 ns with a spread of 100 ns; every twentieth is an outlier.
    fn samples(seed: u64, shift: f64) -> Vec<f64> {
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            f64::from(u32::try_from(state >> 32).unwrap()) / f64::from(u32::MAX)
        };
        let sample = |n: usize| {
            let outlier = if n.is_multiple_of(20) {
                50_000.0 * next()
            } else {
                0.0
            };
            950.0 + 100.0 * next() + outlier + shift
        };
        (0..10_000).map(sample).collect()
    }

    fn pair(expectation: Expectation, shift: f64) -> Pair {
        let rounds = (1..=5).map(|round| Comparison::of(&samples(round, shift), &samples(round + 100, 0.0)));
        Pair::of(expectation, &rounds.collect::<Vec<_>>())
    }

    #[test]
    fn shift_is_found_and_equal_samples_are_not() {
        assert!(!pair(TESTED, 0.0).is_different);
        for shift in [2.5, -2.5] {
            let pair = pair(TESTED, shift);
            assert!(pair.is_different && pair.detectable_ns < 2.0, "{pair}");
        }
    }

    #[test]
    fn difference_counts_from_the_relevant_one() {
        for (relevant_ns, expected) in [(1, true), (3, false)] {
            let pair = pair(Expectation::Tested { relevant_ns }, 2.0);
            assert_eq!(pair.is_different, expected, "{pair}");
        }
        assert!(
            pair(Expectation::Tested { relevant_ns: 0 }, 0.0).is_too_coarse(),
            "the smallest difference would not be found"
        );
    }

    #[test]
    fn one_disturbed_round_is_no_difference() {
        let rounds = [0.0, 0.0, 0.0, 0.0, 40.0].iter().zip(1..);
        let rounds =
            rounds.map(|(shift, round)| Comparison::of(&samples(round, *shift), &samples(round, 0.0)));
        let pair = Pair::of(TESTED, &rounds.collect::<Vec<_>>());
        assert!(pair.z > THRESHOLD && !pair.is_different, "{pair}");
    }

    #[test]
    fn failed_control_makes_the_verdict_inconclusive() {
        let (equal, different) = (pair(Expectation::Equal, 0.0), pair(Expectation::Different, 5.0));
        let verdict = |pairs: &[Pair]| Verdict::of(pairs);
        let leak = pair(TESTED, 5.0);
        assert_eq!(
            verdict(&[pair(TESTED, 0.0), equal, different]),
            Verdict::NoDifference
        );
        assert_eq!(verdict(&[leak, equal, different]), Verdict::SideChannel);
        assert_eq!(
            verdict(&[leak, pair(Expectation::Equal, 5.0), different]),
            Verdict::Inconclusive
        );
        assert_eq!(
            verdict(&[leak, equal, pair(Expectation::Different, 0.0)]),
            Verdict::Inconclusive
        );
        let coarse = pair(Expectation::Tested { relevant_ns: 0 }, 0.0);
        assert_eq!(verdict(&[coarse, equal, different]), Verdict::Inconclusive);
        assert_eq!(verdict(&[coarse, leak, equal, different]), Verdict::SideChannel);
        let worst = Verdict::worst([Verdict::SideChannel, Verdict::Inconclusive]);
        assert_eq!(worst, Verdict::SideChannel);
    }
}
