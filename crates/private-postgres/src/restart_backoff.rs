//! Restart backoff of the server, and the grace period of an absent service.
//!
//! Pure: times are arguments. A server that was ready before is restarted without limit, with a growing
//! backoff. A server that was never ready is given up after a timeout, so that a start that cannot succeed
//! reports an error.

use std::time::{Duration, Instant};

/// Time for the children of a killed server to notice and exit.
const MIN_DELAY: Duration = Duration::from_millis(50);

/// A server on a full disk is retried this often.
const MAX_DELAY: Duration = Duration::from_secs(5);

/// How long a server that was never ready is retried.
const FIRST_START_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a service may be absent before its server is stopped: long enough for a restart, short enough
/// that everything ends within five seconds.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct RestartBackoff {
    since: Instant,
    has_been_ready: bool,
    delay: Duration,
}

/// What to do after the server exited.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RestartDecision {
    StartAt(Instant),
    /// The server was never ready and has been retried long enough.
    GiveUp,
}

impl RestartBackoff {
    /// Begins at the guard's own start.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            since: now,
            has_been_ready: false,
            delay: MIN_DELAY,
        }
    }

    pub(super) fn record_ready(&mut self) {
        self.has_been_ready = true;
        self.delay = MIN_DELAY;
    }

    /// The server exited, or could not be run.
    pub(super) fn record_exit(&mut self, now: Instant) -> RestartDecision {
        if !self.has_been_ready && now.duration_since(self.since) >= FIRST_START_TIMEOUT {
            return RestartDecision::GiveUp;
        }
        let at = now + self.delay;
        self.delay = (self.delay * 2).min(MAX_DELAY);
        RestartDecision::StartAt(at)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServicePresence {
    /// Its lock was held.
    Alive,
    /// Its lock was free.
    Away,
}

#[derive(Debug, Default)]
pub(super) struct ServiceAbsence {
    since: Option<Instant>,
}

impl ServiceAbsence {
    /// Records a probe; true once the grace period is over.
    pub(super) fn has_expired(&mut self, presence: ServicePresence, now: Instant) -> bool {
        if presence == ServicePresence::Alive {
            self.since = None;
            return false;
        }
        now.duration_since(*self.since.get_or_insert(now)) >= GRACE_PERIOD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum_and_reset_on_success() {
        let start = Instant::now();
        let mut restarts = RestartBackoff::new(start);
        restarts.record_ready();
        let mut delays = Vec::new();
        for _ in 0..9 {
            let RestartDecision::StartAt(at) = restarts.record_exit(start + 2 * FIRST_START_TIMEOUT) else {
                panic!("a server that was ready is never given up")
            };
            delays.push((at - start - 2 * FIRST_START_TIMEOUT).as_millis());
        }
        assert_eq!(delays, [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        restarts.record_ready();
        assert_eq!(
            restarts.record_exit(start),
            RestartDecision::StartAt(start + MIN_DELAY)
        );
    }

    #[test]
    fn server_never_ready_is_given_up() {
        let start = Instant::now();
        let mut restarts = RestartBackoff::new(start);
        assert!(matches!(restarts.record_exit(start), RestartDecision::StartAt(_)));
        assert_eq!(
            restarts.record_exit(start + FIRST_START_TIMEOUT),
            RestartDecision::GiveUp
        );
    }

    #[test]
    fn only_continuous_absence_ends_the_grace_period() {
        let start = Instant::now();
        let mut absence = ServiceAbsence::default();
        let table = [
            (0, ServicePresence::Away, false),
            (1900, ServicePresence::Away, false),
            (1950, ServicePresence::Alive, false),
            (2000, ServicePresence::Away, false),
            (3999, ServicePresence::Away, false),
            (4000, ServicePresence::Away, true),
        ];
        for (at_ms, presence, over) in table {
            assert_eq!(
                absence.has_expired(presence, start + Duration::from_millis(at_ms)),
                over,
                "at {at_ms} ms"
            );
        }
    }
}
