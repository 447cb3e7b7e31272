//! Latency breakdown by refusal status and by order form.
//!
//! Rule: latencies of refusals never enter the latency of orders.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::histogram::{merge_histogram, new_histogram, record_latency};

/// Latency of the orders of one form.
#[derive(Clone, Debug)]
pub struct FormStats {
    pub latency_us: Histogram<u64>,
    pub vouchers: u64,
}

impl Default for FormStats {
    fn default() -> Self {
        Self {
            latency_us: new_histogram(),
            vouchers: 0,
        }
    }
}

/// Latencies of measured orders by refusal status and by form.
#[derive(Clone, Debug, Default)]
pub struct LatencyBreakdown {
    pub refusals: BTreeMap<u16, Histogram<u64>>,
    /// Acknowledged orders by the index of their form.
    pub forms: BTreeMap<usize, FormStats>,
}

impl LatencyBreakdown {
    /// Records an acknowledged order with the number of its vouchers.
    pub(crate) fn record_acknowledged(&mut self, form: usize, latency: Duration, vouchers: u64) {
        let form = self.forms.entry(form).or_default();
        record_latency(&mut form.latency_us, latency);
        form.vouchers += vouchers;
    }

    pub(crate) fn record_refusal(&mut self, status: u16, latency: Duration) {
        let refusals = self.refusals.entry(status).or_insert_with(new_histogram);
        record_latency(refusals, latency);
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (status, added) in other.refusals {
            merge_histogram(self.refusals.entry(status).or_insert_with(new_histogram), &added);
        }
        for (index, added) in other.forms {
            let own = self.forms.entry(index).or_default();
            merge_histogram(&mut own.latency_us, &added.latency_us);
            own.vouchers += added.vouchers;
        }
    }
}
