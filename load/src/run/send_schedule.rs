//! Pacing of requests: in a closed loop a connection sends its next request at once, in an open loop each request has
//! a due time that does not depend on earlier responses.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::traffic::pace::{Phase, RunLength};

/// Permission to send one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendSlot {
    /// The part of the run in which it is due.
    pub(crate) phase: Phase,
    /// Due time; `None` means immediately.
    pub(crate) due: Option<Instant>,
}

/// Hands out send slots to the connections of one thread.
#[derive(Debug)]
pub(crate) enum SendSchedule {
    /// Any free connection sends.
    Closed(Arc<SendWindow>),
    /// Each arrival leaves when it is due, or as soon as a connection is free.
    Open(ArrivalCursor),
}

impl SendSchedule {
    /// `None` at the end of the run.
    pub(crate) fn next(&self, now: Instant) -> Option<SendSlot> {
        match self {
            Self::Closed(window) => window.admit(now).map(|phase| SendSlot { phase, due: None }),
            Self::Open(arrivals) => arrivals.next(),
        }
    }
}

/// Decides whether another request may be sent and whether it is measured.
#[derive(Debug)]
pub(crate) struct SendWindow {
    measure_from: Instant,
    end: WindowEnd,
}

#[derive(Debug)]
enum WindowEnd {
    At(Instant),
    /// After so many more requests.
    After(AtomicU64),
}

impl SendWindow {
    pub(crate) fn new(measure_from: Instant, length: RunLength) -> Self {
        let end = match length {
            RunLength::Time(time) => WindowEnd::At(measure_from + time),
            RunLength::Orders(orders) => WindowEnd::After(AtomicU64::new(orders)),
        };
        Self { measure_from, end }
    }

    fn admit(&self, now: Instant) -> Option<Phase> {
        if now < self.measure_from {
            return Some(Phase::WarmUp);
        }
        let open = match &self.end {
            WindowEnd::At(end) => now < *end,
            WindowEnd::After(remaining) => remaining
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |remaining| {
                    remaining.checked_sub(1)
                })
                .is_ok(),
        };
        open.then_some(Phase::Measured)
    }
}

/// The part of a schedule of one thread: every n-th arrival.
#[derive(Debug)]
pub(crate) struct ArrivalCursor {
    schedule: Arc<Vec<Duration>>,
    start: Instant,
    measure_from: Instant,
    next: Cell<usize>,
    step: usize,
}

impl ArrivalCursor {
    /// The arrivals `index`, `index + step`, … of a schedule that begins at `start`.
    pub(crate) fn new(
        schedule: Arc<Vec<Duration>>,
        start: Instant,
        measure_from: Instant,
        index: usize,
        step: usize,
    ) -> Self {
        Self {
            schedule,
            start,
            measure_from,
            next: Cell::new(index),
            step,
        }
    }

    fn next(&self) -> Option<SendSlot> {
        let due = self.start + *self.schedule.get(self.next.get())?;
        self.next.set(self.next.get() + self.step);
        let phase = if due < self.measure_from {
            Phase::WarmUp
        } else {
            Phase::Measured
        };
        Some(SendSlot {
            phase,
            due: Some(due),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_counts_from_end_of_warm_up() {
        let from = Instant::now() + Duration::from_secs(5);
        let window = SendWindow::new(from, RunLength::Orders(2));
        let before = from.checked_sub(Duration::from_millis(1)).unwrap();
        assert_eq!(window.admit(before), Some(Phase::WarmUp));
        let admitted: Vec<_> = (0..3).map(|_| window.admit(from)).collect();
        assert_eq!(admitted, [Some(Phase::Measured), Some(Phase::Measured), None]);

        let window = SendWindow::new(from, RunLength::Time(Duration::from_secs(1)));
        assert_eq!(window.admit(from), Some(Phase::Measured));
        assert_eq!(window.admit(from + Duration::from_secs(1)), None);
    }

    #[test]
    fn threads_share_schedule_and_keep_due_times() {
        let start = Instant::now();
        let times: Vec<_> = (0..5).map(Duration::from_secs).collect();
        let schedule = Arc::new(times);
        let measure_from = start + Duration::from_secs(1);
        let arrivals_of = |index| {
            let slots = SendSchedule::Open(ArrivalCursor::new(
                Arc::clone(&schedule),
                start,
                measure_from,
                index,
                2,
            ));
            // Long after all of them were due.
            let late = start + Duration::from_secs(60);
            std::iter::from_fn(|| slots.next(late))
                .map(|slot| (slot.phase, slot.due.map(|due| (due - start).as_secs())))
                .collect::<Vec<_>>()
        };
        use Phase::{Measured, WarmUp};
        assert_eq!(
            arrivals_of(0),
            [(WarmUp, Some(0)), (Measured, Some(2)), (Measured, Some(4))]
        );
        assert_eq!(arrivals_of(1), [(Measured, Some(1)), (Measured, Some(3))]);
    }
}
