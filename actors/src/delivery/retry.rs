//! Retry policy of webhook deliveries: exponential backoff with jitter. Pure.
//!
//! | failed attempts | delay after the last |
//! |---|---|
//! | 1 | 5 s |
//! | 2 | 15 s |
//! | 3 | 45 s |
//! | 4 | 2 min 15 s |
//! | 5 | 6 min 45 s |
//! | 6 | 20 min 15 s |
//! | 7 | 1 h 45 s |
//! | 8 | 3 h 2 min 15 s |
//! | 9 and more | 8 h |
//!
//! Jitter only lengthens a delay. The last attempt is 24 h after the event's commit; no attempt is scheduled
//! after it.

use std::time::Duration;

use backoff::ExponentialBackoff;
use backoff::backoff::Backoff as _;

pub const INITIAL_BACKOFF: Duration = Duration::from_secs(5);

/// Factor from one delay to the next.
const BACKOFF_FACTOR: u32 = 3;

pub const MAX_BACKOFF: Duration = Duration::from_secs(8 * 3_600);

/// How long a delivery is attempted, from the event's commit (contract §6).
pub const RETRY_WINDOW: Duration = Duration::from_secs(24 * 3_600);

/// Maximum jitter as a fraction of the delay, so that receivers that failed together are not retried
/// together.
const MAX_JITTER: f64 = 0.1;

/// `Retry-After` is honoured up to this multiple of the delay.
const MAX_RETRY_AFTER_FACTOR: u32 = 2;

/// From this attempt on, the delay is [`MAX_BACKOFF`].
const LAST_GROWING_ATTEMPT: u32 = 9;

/// The delay after `attempts` failed attempts, without jitter.
#[must_use]
pub fn delay_after(attempts: u32) -> Duration {
    let mut policy = ExponentialBackoff {
        initial_interval: INITIAL_BACKOFF,
        current_interval: INITIAL_BACKOFF,
        max_interval: MAX_BACKOFF,
        max_elapsed_time: None,
        multiplier: f64::from(BACKOFF_FACTOR),
        randomization_factor: 0.0,
        ..ExponentialBackoff::default()
    };
    for _ in 1..attempts.clamp(1, LAST_GROWING_ATTEMPT) {
        policy.next_backoff();
    }
    // Not what `next_backoff` returns: that has up to one random nanosecond more, even without randomization.
    policy.current_interval
}

/// A failed attempt, from which the next one is scheduled.
#[derive(Debug, Clone, Copy)]
pub struct FailedAttempt {
    /// Failed attempts, including this one.
    pub attempts: u32,
    pub at: Duration,
    /// The receiver's `Retry-After`.
    pub retry_after: Option<Duration>,
    /// Random number from 0 to 1.
    pub jitter: f64,
}

/// The time of the next attempt; `None` if this was the last. `give_up_at` is the time of the last attempt.
#[must_use]
pub fn next_attempt_at(failure: FailedAttempt, give_up_at: Duration) -> Option<Duration> {
    if failure.at >= give_up_at {
        return None;
    }
    let delay = delay_after(failure.attempts);
    let requested = failure.retry_after.map_or(delay, |requested| {
        requested.clamp(delay, delay * MAX_RETRY_AFTER_FACTOR)
    });
    let jitter = delay.mul_f64(MAX_JITTER * failure.jitter.clamp(0.0, 1.0));
    Some((failure.at + requested + jitter).min(give_up_at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(attempts: u32, at: u64) -> FailedAttempt {
        FailedAttempt {
            attempts,
            at: Duration::from_secs(at),
            retry_after: None,
            jitter: 0.0,
        }
    }

    #[test]
    fn delays_triple_up_to_eight_hours() {
        let seconds = [5, 15, 45, 135, 405, 1_215, 3_645, 10_935, 28_800, 28_800, 28_800];
        for (attempts, expected) in (1..).zip(seconds) {
            assert_eq!(
                delay_after(attempts),
                Duration::from_secs(expected),
                "after {attempts}"
            );
        }
        assert_eq!(
            (delay_after(0), delay_after(u32::MAX)),
            (INITIAL_BACKOFF, MAX_BACKOFF)
        );
    }

    #[test]
    fn delay_is_the_same_each_time() {
        // `next_backoff` exceeds its interval in about one of 500 calls.
        assert!((0..20_000).all(|_| delay_after(LAST_GROWING_ATTEMPT) == MAX_BACKOFF));
    }

    #[test]
    fn failing_delivery_has_twelve_attempts_the_last_at_24_hours() {
        let (mut at, mut times) = (0, vec![0]);
        while let Some(next) = next_attempt_at(failure(u32::try_from(times.len()).unwrap(), at), RETRY_WINDOW)
        {
            at = next.as_secs();
            times.push(at);
        }
        let expected = [
            0, 5, 20, 65, 200, 605, 1_820, 5_465, 16_400, 45_200, 74_000, 86_400,
        ];
        assert_eq!(times, expected);
    }

    #[test]
    fn jitter_adds_at_most_a_tenth_and_never_moves_the_last_attempt() {
        let at = |jitter, give_up_at| {
            let failure = FailedAttempt {
                jitter,
                ..failure(2, 100)
            };
            next_attempt_at(failure, Duration::from_secs(give_up_at)).unwrap()
        };
        assert_eq!(at(0.0, 1_000), Duration::from_secs(115));
        assert_eq!(at(1.0, 1_000), Duration::from_millis(116_500));
        assert_eq!(at(7.0, 1_000), Duration::from_millis(116_500));
        assert_eq!(at(1.0, 116), Duration::from_secs(116));
    }

    #[test]
    fn retry_after_is_clamped_between_one_delay_and_two() {
        for (requested, expected) in [(0, 15), (15, 15), (20, 20), (30, 30), (31, 30), (u64::MAX, 30)] {
            let failure = FailedAttempt {
                retry_after: Some(Duration::from_secs(requested)),
                ..failure(2, 0)
            };
            assert_eq!(
                next_attempt_at(failure, RETRY_WINDOW),
                Some(Duration::from_secs(expected)),
                "{requested} s"
            );
        }
    }
}
