//! Counts of the measured requests of an open loop, by whether they were sent and answered while the load
//! lasted, in the drain after it, or not at all.

use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;
use vouchsafe_api_client::{ApiResponse, RequestFailure};

/// A lower share of the due requests, sent while the load lasted, misses the offered rate.
const MIN_SENT_SHARE: f64 = 0.95;

/// End of the load of an open loop, and deadline of the drain after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadEnd {
    pub(crate) at: Instant,
    /// Requests that are open then count as dropped.
    pub(crate) drain_deadline: Instant,
}

/// Measured requests of all kinds. Requests that were due and are in no count were never sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenLoopCounts {
    /// Sent while the load lasted.
    sent: u64,
    /// Answered while the load lasted.
    completed: u64,
    /// Answered in the drain.
    drained: u64,
    /// Not sent because of an error, or without a response: the outcomes have the reasons.
    failed: u64,
}

impl OpenLoopCounts {
    /// Records a request that ended before the drain deadline.
    pub(crate) fn record(
        &mut self,
        load_end: Instant,
        (sent_at, ended_at): (Instant, Instant),
        outcome: &Result<ApiResponse, RequestFailure>,
    ) {
        let was_sent = !matches!(outcome, Err(RequestFailure::NotSent(_)));
        self.sent += u64::from(was_sent && sent_at < load_end);
        match outcome {
            Ok(_) if ended_at < load_end => self.completed += 1,
            Ok(_) => self.drained += 1,
            Err(_) => self.failed += 1,
        }
    }

    /// Records a request without a response at the drain deadline.
    pub(crate) fn record_dropped(&mut self, load_end: Instant, sent_at: Instant) {
        self.sent += u64::from(sent_at < load_end);
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.sent += other.sent;
        self.completed += other.completed;
        self.drained += other.drained;
        self.failed += other.failed;
    }
}

/// Offered and achieved rates of an open loop, for its measured requests of all kinds. Rates are per second
/// of the load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OfferedLoad {
    /// Seconds from the end of the warm-up to the end of the load.
    pub load_s: f64,
    /// Seconds since the end of the load.
    pub drain_deadline_s: f64,
    /// Requests that were due.
    pub offered: u64,
    pub offered_per_s: f64,
    /// Sent while the load lasted.
    pub sent_per_s: f64,
    /// Answered while the load lasted.
    pub completed_per_s: f64,
    /// Requests answered in the drain.
    pub drained: u64,
    /// Requests that were never sent or not answered before the drain deadline.
    pub dropped: u64,
    pub dropped_per_s: f64,
    /// Whether 95 % of the due requests were sent while the load lasted, and none was dropped.
    pub is_reached: bool,
}

impl OfferedLoad {
    pub(crate) fn from_counts(
        offered: u64,
        counts: OpenLoopCounts,
        load: Duration,
        drain_deadline: Duration,
    ) -> Self {
        let load_s = load.as_secs_f64();
        let per_s = |count: u64| if load_s > 0.0 { count as f64 / load_s } else { 0.0 };
        let dropped = offered.saturating_sub(counts.completed + counts.drained + counts.failed);
        Self {
            load_s,
            drain_deadline_s: drain_deadline.as_secs_f64(),
            offered,
            offered_per_s: per_s(offered),
            sent_per_s: per_s(counts.sent),
            completed_per_s: per_s(counts.completed),
            drained: counts.drained,
            dropped,
            dropped_per_s: per_s(dropped),
            is_reached: dropped == 0 && counts.sent as f64 >= offered as f64 * MIN_SENT_SHARE,
        }
    }
}

impl fmt::Display for OfferedLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_reached {
            "offered rate reached"
        } else {
            "offered rate NOT REACHED"
        })?;
        write!(
            f,
            ": {:.0} requests/s due, {:.0} sent, {:.0} completed, {:.0} dropped, over {:.2} s; {} \
             completed in the drain, {} dropped after {} s of it",
            self.offered_per_s,
            self.sent_per_s,
            self.completed_per_s,
            self.dropped_per_s,
            self.load_s,
            self.drained,
            self.dropped,
            self.drain_deadline_s
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Duration = Duration::from_secs(2);

    fn offered_load(offered: u64, counts: OpenLoopCounts) -> OfferedLoad {
        OfferedLoad::from_counts(offered, counts, LOAD, Duration::from_secs(10))
    }

    #[test]
    fn requests_count_by_the_end_of_the_load() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let response = || Ok(hyper::Response::new(bytes::Bytes::new()).into());
        let mut counts = OpenLoopCounts::default();
        counts.record(at(1_000), (at(0), at(999)), &response());
        counts.record(at(1_000), (at(999), at(1_000)), &response());
        counts.record(at(1_000), (at(1_000), at(1_001)), &response());
        counts.record(
            at(1_000),
            (at(1), at(2)),
            &Err(RequestFailure::NotSent(String::new())),
        );
        counts.record(
            at(1_000),
            (at(1), at(2)),
            &Err(RequestFailure::Unknown(String::new())),
        );
        counts.record_dropped(at(1_000), at(3));
        let expected = OpenLoopCounts {
            sent: 4,
            completed: 1,
            drained: 2,
            failed: 2,
        };
        assert_eq!(counts, expected);
        counts.merge(expected);
        let load = offered_load(20, counts);
        assert_eq!(
            (load.offered_per_s, load.sent_per_s, load.completed_per_s),
            (10.0, 4.0, 1.0)
        );
        assert_eq!((load.drained, load.dropped, load.dropped_per_s), (4, 10, 5.0));
    }

    #[test]
    fn rate_is_reached_unless_requests_leave_late_or_are_dropped() {
        for (sent, completed, is_reached) in [
            (100, 100, true),
            (95, 100, true),
            (94, 100, false),
            (100, 99, false),
        ] {
            let counts = OpenLoopCounts {
                sent,
                completed,
                ..OpenLoopCounts::default()
            };
            assert_eq!(offered_load(100, counts).is_reached, is_reached, "{counts:?}");
        }
    }
}
