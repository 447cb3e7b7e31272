//! Circuit breaker for vendors that keep failing.
//!
//! | State | A call | On success | On failure |
//! |---|---|---|---|
//! | closed | passes | the failure count is reset | the fifth in a row opens the circuit |
//! | open | is rejected until the pause is over | | |
//! | half-open | one trial call passes, others are rejected | closed | open again, for twice as long |
//!
//! Plain data; time is an argument. A call that began before the circuit opened does not change the state
//! when it ends. A trial call that never ends blocks the next one for [`HALF_OPEN_TIMEOUT`].

use std::time::Duration;

use backoff::ExponentialBackoff;
use backoff::backoff::Backoff as _;
use vouchsafe_domain::vendor::CircuitState;

/// Failures in a row that open the circuit: one or two happen on any network.
pub const FAILURE_THRESHOLD: u32 = 5;

/// First and longest pause: soon enough to notice a restart, rare enough to spare a broken vendor.
pub const OPEN_DURATION: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How long a trial call blocks others: longer than any call takes.
pub const HALF_OPEN_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct CircuitBreaker {
    state: State,
    /// When `state` was entered; `None`: closed from the beginning.
    since: Option<Duration>,
    /// Failures in a row.
    failures: u32,
    /// Increases with each change that makes the results of earlier calls irrelevant.
    epoch: u64,
    backoff: ExponentialBackoff,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Open { until: Duration },
    HalfOpen { until: Duration },
}

/// The state of a circuit. Times are of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitSnapshot {
    pub state: CircuitState,
    /// When the state was entered; `None`: closed from the beginning.
    pub since: Option<Duration>,
    /// Failures in a row.
    pub failures: u32,
    /// Time from which on an open circuit lets a trial call pass.
    pub next_probe_at: Option<Duration>,
}

/// The permit for one call; return it with the call's result.
#[derive(Debug)]
#[must_use = "record the result of the call"]
pub struct CallPermit {
    epoch: u64,
}

/// The call is rejected; the value is the minimum time to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitOpen(pub Duration);

impl CircuitBreaker {
    /// Creates a closed circuit.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::Closed,
            since: None,
            failures: 0,
            epoch: 0,
            backoff: open_backoff(),
        }
    }

    /// Whether calls are rejected, except a trial call.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !matches!(self.state, State::Closed)
    }

    /// The state as operators see it.
    #[must_use]
    pub const fn snapshot(&self) -> CircuitSnapshot {
        let (state, next_probe_at) = match self.state {
            State::Closed => (CircuitState::Closed, None),
            State::Open { until } => (CircuitState::Open, Some(until)),
            State::HalfOpen { .. } => (CircuitState::HalfOpen, None),
        };
        CircuitSnapshot {
            state,
            since: self.since,
            failures: self.failures,
            next_probe_at,
        }
    }

    const fn enter(&mut self, state: State, now: Duration) {
        self.state = state;
        self.since = Some(now);
    }

    /// Requests a permit at this time of a monotonic clock.
    ///
    /// # Errors
    /// [`CircuitOpen`] with the minimum time to wait.
    pub fn try_acquire(&mut self, now: Duration) -> Result<CallPermit, CircuitOpen> {
        match self.state {
            State::Closed => {}
            State::Open { until } if now < until => return Err(CircuitOpen(until - now)),
            // The trial call usually ends long before its timeout: let callers ask again after the shortest
            // pause.
            State::HalfOpen { until } if now < until => {
                return Err(CircuitOpen((until - now).min(OPEN_DURATION.0)));
            }
            State::Open { .. } | State::HalfOpen { .. } => {
                self.epoch += 1;
                let until = now + HALF_OPEN_TIMEOUT;
                self.enter(State::HalfOpen { until }, now);
            }
        }
        Ok(CallPermit { epoch: self.epoch })
    }

    /// The call got a response, whatever it says.
    #[allow(clippy::needless_pass_by_value, reason = "a permit is used once")]
    pub fn record_success(&mut self, permit: CallPermit, now: Duration) {
        if permit.epoch == self.epoch {
            if self.is_open() {
                self.enter(State::Closed, now);
            }
            self.failures = 0;
            self.backoff.reset();
        }
    }

    /// The call failed. Returns the pause if the circuit opens now.
    #[allow(clippy::needless_pass_by_value, reason = "a permit is used once")]
    pub fn record_failure(&mut self, permit: CallPermit, now: Duration) -> Option<Duration> {
        if permit.epoch != self.epoch {
            return None;
        }
        self.failures = self.failures.saturating_add(1);
        if !self.is_open() && self.failures < FAILURE_THRESHOLD {
            return None;
        }
        let pause = self.backoff.next_backoff().unwrap_or(OPEN_DURATION.1);
        self.epoch += 1;
        self.enter(State::Open { until: now + pause }, now);
        Some(pause)
    }
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self::new()
    }
}

fn open_backoff() -> ExponentialBackoff {
    let (first, max) = OPEN_DURATION;
    ExponentialBackoff {
        initial_interval: first,
        current_interval: first,
        max_interval: max,
        multiplier: 2.0,
        max_elapsed_time: None,
        // No jitter: only one trial call follows a pause.
        randomization_factor: 0.0,
        ..ExponentialBackoff::default()
    }
}

#[cfg(test)]
mod tests;
