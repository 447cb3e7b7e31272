//! When is the server started again, and when does the guard give up or go?
//!
//! Pure: times are arguments. A server that has worked before is started again for ever, ever more slowly; one that never
//! worked is given up after a while, so that a start that cannot succeed says so. A service that has been away for the
//! length of the grace is not waited for any longer.

use std::time::{Duration, Instant};

/// Delay before the first new start: time for the children of a killed server to notice and go.
const MIN_DELAY: Duration = Duration::from_millis(50);

/// Longest delay before a new start. A full disk is tried this often until somebody makes room.
const MAX_DELAY: Duration = Duration::from_secs(5);

/// How long a server that never worked is tried.
const FIRST_START_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a service may be away before its server is stopped: long enough for a restart, short enough that all of it
/// ends within five seconds.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// The history of one guard's server, as far as it decides about the next start.
#[derive(Debug)]
pub(super) struct RestartBackoff {
    since: Instant,
    has_been_ready: bool,
    delay: Duration,
}

/// What follows when the server has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RestartDecision {
    /// Start it again, then.
    StartAt(Instant),
    /// It never worked, and was tried for long enough.
    GiveUp,
}

impl RestartBackoff {
    /// Begins at a guard's own start.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            since: now,
            has_been_ready: false,
            delay: MIN_DELAY,
        }
    }

    /// The server takes connections.
    pub(super) fn record_ready(&mut self) {
        self.has_been_ready = true;
        self.delay = MIN_DELAY;
    }

    /// The server has ended, or could not even be run.
    pub(super) fn record_exit(&mut self, now: Instant) -> RestartDecision {
        if !self.has_been_ready && now.duration_since(self.since) >= FIRST_START_TIMEOUT {
            return RestartDecision::GiveUp;
        }
        let at = now + self.delay;
        self.delay = (self.delay * 2).min(MAX_DELAY);
        RestartDecision::StartAt(at)
    }
}

/// Whether the service was there at the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServicePresence {
    /// It held its lock.
    Alive,
    /// Nobody held its lock.
    Away,
}

/// Since when the service has been away.
#[derive(Debug, Default)]
pub(super) struct ServiceAbsence {
    since: Option<Instant>,
}

impl ServiceAbsence {
    /// Notes a look; true when the grace is over.
    pub(super) fn has_expired(&mut self, seen: ServicePresence, now: Instant) -> bool {
        if seen == ServicePresence::Alive {
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
    fn delays_double_up_to_the_longest_and_begin_anew_after_success() {
        let start = Instant::now();
        let mut restarts = RestartBackoff::new(start);
        restarts.record_ready();
        let mut delays = Vec::new();
        for _ in 0..9 {
            let RestartDecision::StartAt(at) = restarts.record_exit(start + 2 * FIRST_START_TIMEOUT) else {
                panic!("what has worked is never given up")
            };
            delays.push((at - start - 2 * FIRST_START_TIMEOUT).as_millis());
        }
        assert_eq!(delays, [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        restarts.record_ready();
        assert_eq!(restarts.record_exit(start), RestartDecision::StartAt(start + MIN_DELAY));
    }

    #[test]
    fn what_never_worked_is_given_up() {
        let start = Instant::now();
        let mut restarts = RestartBackoff::new(start);
        assert!(matches!(restarts.record_exit(start), RestartDecision::StartAt(_)));
        assert_eq!(restarts.record_exit(start + FIRST_START_TIMEOUT), RestartDecision::GiveUp);
    }

    #[test]
    fn only_an_absence_without_a_break_ends_the_grace() {
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
        for (at_ms, seen, over) in table {
            assert_eq!(
                absence.has_expired(seen, start + Duration::from_millis(at_ms)),
                over,
                "at {at_ms} ms"
            );
        }
    }
}
