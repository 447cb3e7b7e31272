//! When may the next request leave, and does it count? In a closed loop whenever a connection is free; in an open one at
//! its own time, whatever became of those before it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::run::RunLength;
use crate::tally::Phase;

/// Leave to send one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendSlot {
    /// In which part of the run.
    pub(crate) phase: Phase,
    /// When it is to leave; `None` is now.
    pub(crate) due: Option<Instant>,
}

/// What gives one thread's connections their turns.
#[derive(Debug)]
pub(crate) enum SendSchedule {
    /// Whoever is free goes.
    Closed(Arc<SendWindow>),
    /// Each arrival goes at its time, or as soon after as a connection is free.
    Open(ArrivalCursor),
}

impl SendSchedule {
    /// The next turn; `None` when there is none left.
    pub(crate) fn next(&self, now: Instant) -> Option<SendSlot> {
        match self {
            Self::Closed(gate) => gate.admit(now).map(|phase| SendSlot { phase, due: None }),
            Self::Open(arrivals) => arrivals.next(),
        }
    }
}

/// Says whether another order may be sent, and whether it counts.
#[derive(Debug)]
pub(crate) struct SendWindow {
    measure_from: Instant,
    end: End,
}

#[derive(Debug)]
enum End {
    At(Instant),
    /// When so many more have been sent.
    After(AtomicU64),
}

impl SendWindow {
    /// Opens for this length.
    pub(crate) fn new(measure_from: Instant, length: RunLength) -> Self {
        let end = match length {
            RunLength::Time(time) => End::At(measure_from + time),
            RunLength::Orders(orders) => End::After(AtomicU64::new(orders)),
        };
        Self { measure_from, end }
    }

    fn admit(&self, now: Instant) -> Option<Phase> {
        if now < self.measure_from {
            return Some(Phase::WarmUp);
        }
        let open = match &self.end {
            End::At(end) => now < *end,
            End::After(left) => left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok(),
        };
        open.then_some(Phase::Measured)
    }
}

/// One thread's part of a schedule: every n-th arrival.
#[derive(Debug)]
pub(crate) struct ArrivalCursor {
    schedule: Arc<Vec<Duration>>,
    start: Instant,
    measure_from: Instant,
    next: Cell<usize>,
    step: usize,
}

impl ArrivalCursor {
    /// The arrivals `index`, `index + step`, … of a schedule that starts at `start`.
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
    fn the_gate_counts_from_the_end_of_the_warm_up() {
        let from = Instant::now() + Duration::from_secs(5);
        let gate = SendWindow::new(from, RunLength::Orders(2));
        let before = from.checked_sub(Duration::from_millis(1)).unwrap();
        assert_eq!(gate.admit(before), Some(Phase::WarmUp));
        let admitted: Vec<_> = (0..3).map(|_| gate.admit(from)).collect();
        assert_eq!(admitted, [Some(Phase::Measured), Some(Phase::Measured), None]);

        let gate = SendWindow::new(from, RunLength::Time(Duration::from_secs(1)));
        assert_eq!(gate.admit(from), Some(Phase::Measured));
        assert_eq!(gate.admit(from + Duration::from_secs(1)), None);
    }

    #[test]
    fn threads_share_a_schedule_and_each_arrival_keeps_its_time() {
        let start = Instant::now();
        let times: Vec<_> = (0..5).map(Duration::from_secs).collect();
        let schedule = Arc::new(times);
        let measure_from = start + Duration::from_secs(1);
        let part = |index| {
            let turns = SendSchedule::Open(ArrivalCursor::new(
                Arc::clone(&schedule),
                start,
                measure_from,
                index,
                2,
            ));
            // Asked long after all of them were due.
            let late = start + Duration::from_secs(60);
            std::iter::from_fn(|| turns.next(late))
                .map(|turn| (turn.phase, turn.due.map(|due| (due - start).as_secs())))
                .collect::<Vec<_>>()
        };
        use Phase::{Measured, WarmUp};
        assert_eq!(
            part(0),
            [(WarmUp, Some(0)), (Measured, Some(2)), (Measured, Some(4))]
        );
        assert_eq!(part(1), [(Measured, Some(1)), (Measured, Some(3))]);
    }
}
