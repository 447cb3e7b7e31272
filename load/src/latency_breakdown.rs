//! Which latencies are told apart from that of all orders? Those of refusals, by status, and those of each form of order.
//!
//! Rule: a refusal has no part in the latency of orders; how soon it comes is a question of its own, which an overload asks.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::tally::{merge_histogram, new_histogram, micros};

/// What orders of one form took.
#[derive(Clone, Debug)]
pub struct FormStats {
    /// Latency of those that were acknowledged, in microseconds.
    pub latency_us: Histogram<u64>,
    /// The vouchers in their answers.
    pub vouchers: u64,
}

/// Latencies of measured orders, told apart.
#[derive(Clone, Debug, Default)]
pub struct LatencyBreakdown {
    /// Of answers other than 2xx, by status, in microseconds.
    pub refusals: BTreeMap<u16, Histogram<u64>>,
    /// Of orders, by the index of their form.
    pub forms: BTreeMap<usize, FormStats>,
}

impl LatencyBreakdown {
    /// Enters an order of this form that was acknowledged with so many vouchers.
    pub(crate) fn record_acknowledged(&mut self, form: usize, latency: Duration, vouchers: u64) {
        let form = self.forms.entry(form).or_insert_with(|| FormStats {
            latency_us: new_histogram(),
            vouchers: 0,
        });
        form.latency_us.saturating_record(micros(latency));
        form.vouchers += vouchers;
    }

    /// Enters an order that was answered otherwise.
    pub(crate) fn record_refusal(&mut self, status: u16, latency: Duration) {
        let refusals = self.refusals.entry(status).or_insert_with(new_histogram);
        refusals.saturating_record(micros(latency));
    }

    /// Adds what another thread saw.
    pub(crate) fn merge(&mut self, other: Self) {
        for (status, theirs) in other.refusals {
            merge_histogram(self.refusals.entry(status).or_insert_with(new_histogram), &theirs);
        }
        for (index, theirs) in other.forms {
            match self.forms.get_mut(&index) {
                Some(mine) => {
                    merge_histogram(&mut mine.latency_us, &theirs.latency_us);
                    mine.vouchers += theirs.vouchers;
                }
                None => {
                    self.forms.insert(index, theirs);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up_by_form_and_status() {
        let ms = Duration::from_millis;
        let (mut one, mut two) = (LatencyBreakdown::default(), LatencyBreakdown::default());
        one.record_acknowledged(0, ms(1), 1);
        two.record_acknowledged(0, ms(3), 1);
        two.record_acknowledged(1, ms(9), 1_000);
        one.record_refusal(503, ms(2));
        two.record_refusal(503, ms(4));
        two.record_refusal(409, ms(1));
        one.merge(two);
        let forms: Vec<_> = one
            .forms
            .iter()
            .map(|(index, form)| (*index, form.latency_us.len(), form.vouchers))
            .collect();
        assert_eq!(forms, [(0, 2, 2), (1, 1, 1_000)]);
        let refusals: Vec<_> = one
            .refusals
            .iter()
            .map(|(status, latency)| (*status, latency.len()))
            .collect();
        assert_eq!(refusals, [(409, 1), (503, 2)]);
    }
}
