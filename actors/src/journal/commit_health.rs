//! Health of a lane's commits: whether an order that arrives now can be committed. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// A commit in flight for longer is stalled: the disk hangs, or a synchronous standby is away. Longer than
/// the store's lock timeout.
const STALL: Duration = Duration::from_secs(3);

/// How long a failure counts if no further commit is attempted. Then orders are admitted again: nothing else
/// shows whether they can be written.
const FAILURE_VALIDITY: Duration = Duration::from_secs(10);

/// How long a success shows that commits proceed.
const SUCCESS_VALIDITY: Duration = Duration::from_secs(10);

/// Commits that succeed for this long have recovered: on a disk that is nearly full some batches still fit.
const RECOVERY_DELAY: Duration = Duration::from_secs(5);

/// The commits of one lane.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CommitHealth {
    started_at: Option<Instant>,
    succeeded_at: Option<Instant>,
    /// The last failure, until a success.
    failed_at: Option<Instant>,
    /// The last failure, until a recovery is reported.
    unrecovered_since: Option<Instant>,
}

impl CommitHealth {
    /// A commit is sent.
    pub(super) const fn start(&mut self, now: Instant) {
        self.started_at = Some(now);
    }

    /// A commit was answered, or its connection was lost.
    pub(super) const fn finish(&mut self) {
        self.started_at = None;
    }

    /// The store wrote a batch. Returns whether commits have recovered with it.
    pub(super) fn record_success(&mut self, now: Instant) -> bool {
        self.succeeded_at = Some(now);
        self.failed_at = None;
        let has_recovered = self
            .unrecovered_since
            .is_some_and(|at| now.saturating_duration_since(at) >= RECOVERY_DELAY);
        if has_recovered {
            self.unrecovered_since = None;
        }
        has_recovered
    }

    /// The store lacks a resource to write batches, such as space on the disk.
    pub(super) const fn record_failure(&mut self, now: Instant) {
        self.failed_at = Some(now);
        self.unrecovered_since = Some(now);
    }

    /// Whether a batch was written recently.
    pub(super) fn has_committed(&self, now: Instant) -> bool {
        self.succeeded_at
            .is_some_and(|at| now.saturating_duration_since(at) < SUCCESS_VALIDITY)
    }

    pub(super) fn can_commit(&self, now: Instant) -> bool {
        let is_stalled = self
            .started_at
            .is_some_and(|at| now.saturating_duration_since(at) >= STALL);
        let is_failing = self
            .failed_at
            .is_some_and(|at| now.saturating_duration_since(at) < FAILURE_VALIDITY);
        !is_stalled && !is_failing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_in_flight_for_three_seconds_is_stalled_until_it_is_answered() {
        let start = Instant::now();
        let mut health = CommitHealth::default();
        assert!(health.can_commit(start));
        health.start(start);
        assert!(health.can_commit(start + Duration::from_millis(2_999)));
        assert!(!health.can_commit(start + STALL));
        health.finish();
        assert!(health.can_commit(start + STALL));
    }

    #[test]
    fn failure_counts_until_a_success_or_for_ten_seconds() {
        let start = Instant::now();
        let mut health = CommitHealth::default();
        health.record_failure(start);
        assert!(!health.can_commit(start + Duration::from_millis(9_999)));
        assert!(health.can_commit(start + FAILURE_VALIDITY));
        assert!(!health.has_committed(start));
        health.record_success(start);
        assert!(health.can_commit(start) && health.has_committed(start));
        assert!(!health.has_committed(start + SUCCESS_VALIDITY));
    }

    #[test]
    fn recovery_is_reported_once_commits_have_succeeded_for_five_seconds() {
        let start = Instant::now();
        let mut health = CommitHealth::default();
        assert!(!health.record_success(start), "nothing failed");
        health.record_failure(start);
        assert!(!health.record_success(start + Duration::from_millis(4_999)));
        health.record_failure(start + RECOVERY_DELAY);
        assert!(!health.record_success(start + RECOVERY_DELAY));
        assert!(health.record_success(start + 2 * RECOVERY_DELAY));
        assert!(!health.record_success(start + 3 * RECOVERY_DELAY));
    }
}
