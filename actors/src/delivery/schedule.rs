//! When is a delivery tried again? A policy of growing gaps, with time and chance as arguments.
//!
//! | failed attempts | gap from the end of the last |
//! |---|---|
//! | 1 | 5 s |
//! | 2 | 15 s |
//! | 3 | 45 s |
//! | 4 | 2 min 15 s |
//! | 5 | 6 min 45 s |
//! | 6 | 20 min 15 s |
//! | 7 | 1 h 45 s |
//! | 8 | 3 h 2 min 15 s |
//! | from 9 on | 8 h |
//!
//! Rule: chance only adds, and no attempt is planned behind the last one, which is 24 h after the event's commit.

use std::time::Duration;

use backoff::ExponentialBackoff;
use backoff::backoff::Backoff as _;

/// The first gap.
pub const FIRST_GAP: Duration = Duration::from_secs(5);

/// By how much each gap is longer than the one before.
const FACTOR: u32 = 3;

/// The longest gap.
pub const LONGEST_GAP: Duration = Duration::from_secs(8 * 3_600);

/// For how long a delivery is tried, from the event's commit (contract §6).
pub const TRIED_FOR: Duration = Duration::from_secs(24 * 3_600);

/// By which part of itself chance makes a gap longer at most, so that receivers that failed together are not tried together.
const MOST_CHANCE: f64 = 0.1;

/// A receiver that says when it wants to be tried again is heard up to so many gaps.
const MOST_GAPS_AFTER: u32 = 2;

/// From here on gaps are as long as they get.
const LAST_GROWING: u32 = 9;

/// The gap after so many failed attempts, without chance.
#[must_use]
pub fn gap(attempts: u32) -> Duration {
    let mut policy = ExponentialBackoff {
        initial_interval: FIRST_GAP,
        current_interval: FIRST_GAP,
        max_interval: LONGEST_GAP,
        max_elapsed_time: None,
        multiplier: f64::from(FACTOR),
        randomization_factor: 0.0,
        ..ExponentialBackoff::default()
    };
    let mut gap = FIRST_GAP;
    for _ in 0..attempts.clamp(1, LAST_GROWING) {
        gap = policy.next_backoff().unwrap_or(LONGEST_GAP);
    }
    gap
}

/// What the next attempt is planned by.
#[derive(Debug, Clone, Copy)]
pub struct Failure {
    /// Failed attempts, this one included.
    pub attempts: u32,
    pub at: Duration,
    /// How long the receiver asked to wait.
    pub retry_after: Option<Duration>,
    /// From 0 to 1.
    pub chance: f64,
}

/// When it is tried again; `None` when that was the last attempt. `ends` is the moment of the last one.
#[must_use]
pub fn next(failure: Failure, ends: Duration) -> Option<Duration> {
    if failure.at >= ends {
        return None;
    }
    let gap = gap(failure.attempts);
    let asked = failure
        .retry_after
        .map_or(gap, |asked| asked.clamp(gap, gap * MOST_GAPS_AFTER));
    let chance = gap.mul_f64(MOST_CHANCE * failure.chance.clamp(0.0, 1.0));
    Some((failure.at + asked + chance).min(ends))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(attempts: u32, at: u64) -> Failure {
        Failure {
            attempts,
            at: Duration::from_secs(at),
            retry_after: None,
            chance: 0.0,
        }
    }

    #[test]
    fn gaps_grow_threefold_up_to_eight_hours() {
        let seconds = [5, 15, 45, 135, 405, 1_215, 3_645, 10_935, 28_800, 28_800, 28_800];
        for (attempts, expected) in (1..).zip(seconds) {
            assert_eq!(gap(attempts), Duration::from_secs(expected), "after {attempts}");
        }
        assert_eq!((gap(0), gap(u32::MAX)), (FIRST_GAP, LONGEST_GAP));
    }

    #[test]
    fn a_day_of_failures_is_twelve_attempts_the_last_at_24_hours() {
        let (mut at, mut times) = (0, vec![0]);
        while let Some(next) = next(failure(u32::try_from(times.len()).unwrap(), at), TRIED_FOR) {
            at = next.as_secs();
            times.push(at);
        }
        let expected = [
            0, 5, 20, 65, 200, 605, 1_820, 5_465, 16_400, 45_200, 74_000, 86_400,
        ];
        assert_eq!(times, expected);
    }

    #[test]
    fn chance_adds_a_tenth_at_most_and_never_moves_the_last_attempt() {
        let at = |chance, ends| {
            let failure = Failure {
                chance,
                ..failure(2, 100)
            };
            next(failure, Duration::from_secs(ends)).unwrap()
        };
        assert_eq!(at(0.0, 1_000), Duration::from_secs(115));
        assert_eq!(at(1.0, 1_000), Duration::from_millis(116_500));
        assert_eq!(at(7.0, 1_000), Duration::from_millis(116_500));
        assert_eq!(at(1.0, 116), Duration::from_secs(116));
    }

    #[test]
    fn a_receiver_is_heard_between_one_gap_and_two() {
        for (asked, expected) in [(0, 15), (15, 15), (20, 20), (30, 30), (31, 30), (u64::MAX, 30)] {
            let failure = Failure {
                retry_after: Some(Duration::from_secs(asked)),
                ..failure(2, 0)
            };
            assert_eq!(
                next(failure, TRIED_FOR),
                Some(Duration::from_secs(expected)),
                "{asked} s"
            );
        }
    }
}
