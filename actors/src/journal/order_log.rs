//! Log lines of slow orders and of a sample of all orders, with the durations of their steps.

use std::time::Duration;

use tracing::info;
use vouchsafe_domain::order::trace::{OrderTrace, to_micros};

use super::batch::Batch;
use crate::ports::record::Verdict;

/// One of this number of a lane's orders is logged, whatever it took, beginning with the first.
const SAMPLE_INTERVAL: u32 = 1_000;

/// From this time on, from the head of the request to the verdict, an order is slow. Of the slow orders of a
/// batch the slowest is logged: they share the commit, and an overloaded node does not fill its log.
const SLOW_ORDER: Duration = Duration::from_secs(1);

/// Selects the orders of a lane that are logged.
#[derive(Default)]
pub(super) struct OrderLog {
    /// The number of orders until the next sample.
    until_sample: u32,
}

impl OrderLog {
    /// Logs at most one of the orders that the batch has committed.
    pub(super) fn report(&mut self, batch: &Batch, verdicts: &[Verdict], commit: Duration) {
        let commit_us = to_micros(commit);
        let traces = batch.records().iter().zip(verdicts).map(|(record, verdict)| {
            let order = record
                .order
                .as_ref()
                .filter(|_| matches!(verdict, Verdict::Committed(_)));
            order.and_then(|order| order.trace)
        });
        let Some((index, is_slow)) = self.select(traces, commit_us) else {
            return;
        };
        let Some(order) = &batch.records()[index].order else {
            return;
        };
        let Some(trace) = order.trace else { return };
        let _entered = batch.span_of(index).enter();
        info!(
            order.id = %order.order_id,
            partner.id = %order.partner_id,
            order.is_slow = is_slow,
            order.admission_us = trace.admission_us,
            order.holds_us = trace.holds_us,
            order.queue_us = trace.queue_us,
            order.commit_us = commit_us,
            "order committed"
        );
    }

    /// The slowest order if it is slow, or the one that is due as a sample; and whether it is slow.
    fn select(
        &mut self,
        traces: impl Iterator<Item = Option<OrderTrace>>,
        commit_us: i32,
    ) -> Option<(usize, bool)> {
        let (mut slowest, mut sample) = (None, None);
        for (index, trace) in traces.enumerate() {
            let Some(trace) = trace else { continue };
            slowest = slowest.max(Some((trace.total_us().saturating_add(commit_us), index)));
            if self.until_sample == 0 {
                sample = Some(index);
                self.until_sample = SAMPLE_INTERVAL;
            }
            self.until_sample -= 1;
        }
        let slow = slowest.filter(|(total_us, _)| *total_us >= to_micros(SLOW_ORDER));
        let slow = slow.map(|(_, index)| (index, true));
        slow.or(sample.map(|index| (index, false)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(count: usize, holds_us: i32) -> impl Iterator<Item = Option<OrderTrace>> {
        let trace = OrderTrace {
            trace_id: uuid::Uuid::max(),
            admission_us: 0,
            holds_us,
            queue_us: 0,
        };
        std::iter::repeat_n(Some(trace), count)
    }

    #[test]
    fn order_log_has_first_order_and_one_of_each_thousand() {
        let mut log = OrderLog::default();
        assert_eq!(
            log.select([None].into_iter().chain(orders(2, 0)), 0),
            Some((1, false))
        );
        assert_eq!(log.select(orders(998, 0), 0), None);
        assert_eq!(log.select(orders(5, 0), 0), Some((0, false)));
    }

    #[test]
    fn order_log_has_slowest_order_of_each_batch_with_slow_ones() {
        let mut log = OrderLog::default();
        let batch = || orders(1, 500_000).chain(orders(1, 600_000)).chain(orders(1, 0));
        assert_eq!(log.select(batch(), 400_000), Some((1, true)));
        assert_eq!(log.select(batch(), 400_000), Some((1, true)));
        assert_eq!(log.select(batch(), 399_999), None);
        assert_eq!(log.select(orders(1, i32::MAX), 1), Some((0, true)));
    }
}
