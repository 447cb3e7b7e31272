//! When is a vendor left alone that keeps failing? A circuit breaker.
//!
//! | State | A call | It is answered | It fails |
//! |---|---|---|---|
//! | closed | passes | the failures are forgotten | the fifth in a row opens it |
//! | open | is held back until the pause is over | | |
//! | half-open | one passes, the others are held back for a moment | closed | open again, for twice as long |
//!
//! Rule: plain data, time is an argument. A call that began before the breaker opened changes nothing when it ends; one
//! that never ends holds the next one back for [`PROBE_PATIENCE`] and no longer.

use std::time::Duration;

use backoff::ExponentialBackoff;
use backoff::backoff::Backoff as _;

/// Failures in a row that open it: one or two happen on any network.
pub const FAILURE_THRESHOLD: u32 = 5;

/// The first pause and the longest one: soon enough to notice a restart, seldom enough to leave a broken vendor alone.
pub const OPEN_DURATION: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How long the one call of a half-open breaker is waited for: longer than any call takes.
pub const HALF_OPEN_TIMEOUT: Duration = Duration::from_secs(60);

/// How a vendor has been of late.
#[derive(Debug)]
pub struct CircuitBreaker {
    state: CircuitState,
    /// Counts the changes after which older calls say nothing any more.
    epoch: u64,
    backoff: ExponentialBackoff,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CircuitState {
    Closed { failures: u32 },
    Open { until: Duration },
    HalfOpen { until: Duration },
}

/// The right to make one call. How it ended is told with it.
#[derive(Debug)]
#[must_use = "tell the breaker how the call ended"]
pub struct CallPermit {
    epoch: u64,
}

/// A call is held back for so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitOpen(pub Duration);

impl CircuitBreaker {
    /// A closed one: nothing is known against the vendor.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: CircuitState::Closed { failures: 0 },
            epoch: 0,
            backoff: open_backoff(),
        }
    }

    /// Asks for a call at this moment of a monotonic clock.
    ///
    /// # Errors
    /// [`HeldBack`] says how long to wait at least.
    pub fn try_acquire(&mut self, now: Duration) -> Result<CallPermit, CircuitOpen> {
        match self.state {
            CircuitState::Closed { .. } => {}
            CircuitState::Open { until } if now < until => return Err(CircuitOpen(until - now)),
            // The one call is over long before its patience is, and then there is no reason to stay away.
            CircuitState::HalfOpen { until } if now < until => return Err(CircuitOpen((until - now).min(OPEN_DURATION.0))),
            CircuitState::Open { .. } | CircuitState::HalfOpen { .. } => {
                self.epoch += 1;
                self.state = CircuitState::HalfOpen {
                    until: now + HALF_OPEN_TIMEOUT,
                };
            }
        }
        Ok(CallPermit { epoch: self.epoch })
    }

    /// The call was answered, whatever was said.
    #[allow(clippy::needless_pass_by_value, reason = "a pass is used once")]
    pub fn record_success(&mut self, pass: CallPermit) {
        if pass.epoch == self.epoch {
            self.state = CircuitState::Closed { failures: 0 };
            self.backoff.reset();
        }
    }

    /// The call failed. Says for how long calls are held back, if that begins now.
    #[allow(clippy::needless_pass_by_value, reason = "a pass is used once")]
    pub fn record_failure(&mut self, pass: CallPermit, now: Duration) -> Option<Duration> {
        if pass.epoch != self.epoch {
            return None;
        }
        if let CircuitState::Closed { failures } = &mut self.state {
            *failures += 1;
            if *failures < FAILURE_THRESHOLD {
                return None;
            }
        }
        let pause = self.backoff.next_backoff().unwrap_or(OPEN_DURATION.1);
        self.epoch += 1;
        self.state = CircuitState::Open { until: now + pause };
        Some(pause)
    }
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self::new()
    }
}

fn open_backoff() -> ExponentialBackoff {
    let (first, longest) = OPEN_DURATION;
    ExponentialBackoff {
        initial_interval: first,
        current_interval: first,
        max_interval: longest,
        multiplier: 2.0,
        max_elapsed_time: None,
        // Without chance: one call alone comes after a pause.
        randomization_factor: 0.0,
        ..ExponentialBackoff::default()
    }
}

#[cfg(test)]
mod tests;
