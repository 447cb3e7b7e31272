//! Pacing of requests: in a closed loop a connection sends its next request at once, in an open loop each
//! request has a due time that does not depend on earlier responses.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::tally::SendDelay;
use crate::tally::open_loop::LoadEnd;
use crate::traffic::pace::{Phase, RunLength};

/// Permission to send one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendSlot {
    pub(crate) phase: Phase,
    /// Due time; `None` means immediately.
    pub(crate) due: Option<Instant>,
    /// When the connection asked for it.
    pub(crate) free_at: Instant,
}

impl SendSlot {
    /// How late the request leaves at `now`; `None` in a closed loop.
    pub(crate) fn delay(&self, now: Instant) -> Option<SendDelay> {
        let due = self.due?;
        Some(SendDelay {
            total: now.saturating_duration_since(due),
            by_generator: now.saturating_duration_since(due.max(self.free_at)),
        })
    }
}

/// Hands out send slots to all connections of a run.
#[derive(Debug)]
pub(crate) struct SendSchedule {
    measure_from: Instant,
    end: ScheduleEnd,
}

#[derive(Debug)]
enum ScheduleEnd {
    /// A closed loop until this time.
    At(Instant),
    /// A closed loop of so many more requests.
    After(AtomicU64),
    /// An open loop: each arrival leaves when it is due, or as soon as a connection is free. Arrivals of the
    /// warm-up do not leave after it, and none leaves after the drain deadline.
    Arrivals {
        start: Instant,
        /// Times since the start.
        times: Vec<Duration>,
        next: AtomicUsize,
        load_end: LoadEnd,
    },
}

impl SendSchedule {
    pub(crate) fn closed(measure_from: Instant, length: RunLength) -> Self {
        let end = match length {
            RunLength::Time(time) => ScheduleEnd::At(measure_from + time),
            RunLength::Orders(orders) => ScheduleEnd::After(AtomicU64::new(orders)),
        };
        Self { measure_from, end }
    }

    pub(crate) fn open(
        measure_from: Instant,
        start: Instant,
        times: Vec<Duration>,
        load_end: LoadEnd,
    ) -> Self {
        let end = ScheduleEnd::Arrivals {
            start,
            times,
            next: AtomicUsize::new(0),
            load_end,
        };
        Self { measure_from, end }
    }

    /// `None` for a closed loop.
    pub(crate) fn load_end(&self) -> Option<LoadEnd> {
        match &self.end {
            ScheduleEnd::Arrivals { load_end, .. } => Some(*load_end),
            ScheduleEnd::At(_) | ScheduleEnd::After(_) => None,
        }
    }

    /// `None` for a closed loop, which waits for its last responses.
    pub(crate) fn drain_deadline(&self) -> Option<Instant> {
        Some(self.load_end()?.drain_deadline)
    }

    /// Requests of an open loop that are due after the warm-up; 0 for a closed loop.
    pub(crate) fn offered(&self) -> u64 {
        match &self.end {
            ScheduleEnd::Arrivals { start, times, .. } => {
                let warm_up = times.partition_point(|time| *start + *time < self.measure_from);
                (times.len() - warm_up) as u64
            }
            ScheduleEnd::At(_) | ScheduleEnd::After(_) => 0,
        }
    }

    /// `None` at the end of the run.
    pub(crate) fn next(&self, now: Instant) -> Option<SendSlot> {
        let (at, due) = match &self.end {
            ScheduleEnd::Arrivals { load_end, .. } if now >= load_end.drain_deadline => return None,
            ScheduleEnd::Arrivals {
                start, times, next, ..
            } => loop {
                let due = *start + *times.get(next.fetch_add(1, Ordering::Relaxed))?;
                // A backlog of the warm-up would delay the measured requests.
                if due >= self.measure_from || now < self.measure_from {
                    break (due, Some(due));
                }
            },
            ScheduleEnd::At(_) | ScheduleEnd::After(_) => (now, None),
        };
        if at < self.measure_from {
            let phase = Phase::WarmUp;
            return Some(SendSlot {
                phase,
                due,
                free_at: now,
            });
        }
        let is_open = match &self.end {
            ScheduleEnd::At(end) => now < *end,
            ScheduleEnd::After(remaining) => {
                let take_one = |remaining: u64| remaining.checked_sub(1);
                remaining
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_one)
                    .is_ok()
            }
            ScheduleEnd::Arrivals { .. } => true,
        };
        let phase = Phase::Measured;
        is_open.then_some(SendSlot {
            phase,
            due,
            free_at: now,
        })
    }
}

#[cfg(test)]
mod tests {
    use Phase::{Measured, WarmUp};

    use super::*;

    #[test]
    fn closed_loop_counts_from_end_of_warm_up() {
        let from = Instant::now() + Duration::from_secs(5);
        let phase_at = |schedule: &SendSchedule, now| schedule.next(now).map(|slot| slot.phase);
        let schedule = SendSchedule::closed(from, RunLength::Orders(2));
        let before = from.checked_sub(Duration::from_millis(1)).unwrap();
        assert_eq!(phase_at(&schedule, before), Some(WarmUp));
        let phases: Vec<_> = (0..3).map(|_| phase_at(&schedule, from)).collect();
        assert_eq!(phases, [Some(Measured), Some(Measured), None]);

        let schedule = SendSchedule::closed(from, RunLength::Time(Duration::from_secs(1)));
        assert_eq!(phase_at(&schedule, from), Some(Measured));
        assert_eq!(phase_at(&schedule, from + Duration::from_secs(1)), None);
    }

    #[test]
    fn delay_by_the_generator_begins_when_a_connection_is_free() {
        let due = Instant::now();
        let ms = Duration::from_millis;
        for (free_ms, by_generator) in [(0, 30), (20, 10)] {
            let slot = SendSlot {
                phase: Measured,
                due: Some(due),
                free_at: due + ms(free_ms),
            };
            let delay = slot.delay(due + ms(30)).unwrap();
            assert_eq!((delay.total, delay.by_generator), (ms(30), ms(by_generator)));
        }
    }

    #[test]
    fn open_loop_keeps_due_times() {
        let start = Instant::now();
        let times = (0..4).map(Duration::from_secs).collect();
        let seconds = |seconds| start + Duration::from_secs(seconds);
        let load_end = LoadEnd {
            at: seconds(4),
            drain_deadline: seconds(61),
        };
        let schedule = SendSchedule::open(seconds(2), start, times, load_end);
        assert_eq!(schedule.offered(), 2);
        assert_eq!(schedule.next(seconds(61)), None, "after the drain deadline");
        let warm_up = schedule.next(start).map(|slot| slot.phase);
        assert_eq!(warm_up, Some(WarmUp));
        // Long after all of them were due: the second one of the warm-up does not leave.
        let late = seconds(60);
        let slots: Vec<_> = std::iter::from_fn(|| schedule.next(late))
            .map(|slot| (slot.phase, slot.due.map(|due| (due - start).as_secs())))
            .collect();
        assert_eq!(slots, [(Measured, Some(2)), (Measured, Some(3))]);
    }
}
