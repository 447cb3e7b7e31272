//! Progress counters of a run, which the resource monitor reads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Progress of a run; clones share the counters.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    acknowledged: AtomicU64,
    measured_from: OnceLock<Instant>,
}

impl Progress {
    /// Counts an acknowledged order.
    pub(crate) fn order_acknowledged(&self) {
        self.0.acknowledged.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets the end of the warm-up.
    pub(crate) fn set_measurement_start(&self, from: Instant) {
        // A `Progress` belongs to one run; a second start is ignored.
        let _ = self.0.measured_from.set(from);
    }

    /// Acknowledged new orders.
    pub(crate) fn acknowledged_orders(&self) -> u64 {
        self.0.acknowledged.load(Ordering::Relaxed)
    }

    /// End of the warm-up; `None` before the run starts.
    pub(crate) fn measurement_start(&self) -> Option<Instant> {
        self.0.measured_from.get().copied()
    }
}
