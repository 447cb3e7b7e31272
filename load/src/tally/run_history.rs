//! Records of a run beyond its tally: sent orders, for duplicates and reads in this or a later run, and
//! per-order latency samples.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::sent_orders::SentLog;

/// Selects what a run records.
#[derive(Clone, Debug, Default)]
pub struct RunHistory {
    /// Orders for duplicates and reads.
    pub orders: OrderHistory,
    /// Whether to record a latency sample per acknowledged order: 16 bytes each.
    pub latency_samples: bool,
}

/// Source and scope of the order history.
#[derive(Clone, Debug, Default)]
pub enum OrderHistory {
    /// Own orders, if the traffic includes duplicates or reads.
    #[default]
    AsNeeded,
    /// All own orders, for a later run.
    Keep,
    /// Orders of an earlier run.
    FromRun(Arc<SentOrders>),
}

/// The orders of a run with a definite response.
#[derive(Debug, Default)]
pub struct SentOrders(Vec<SentLog>);

impl SentOrders {
    /// Keeps the orders with a definite response.
    pub(crate) fn from_logs(logs: impl IntoIterator<Item = SentLog>) -> Self {
        Self(logs.into_iter().map(SentLog::into_completed).collect())
    }

    /// The share of one thread; the shares are disjoint.
    pub(crate) fn share_of_thread(&self, index: usize, threads: usize) -> SentLog {
        let mut part = SentLog::default();
        let orders = self.0.iter().flat_map(SentLog::orders);
        for order in orders.skip(index).step_by(threads) {
            part.insert_past(order.clone());
        }
        part
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.0.iter().map(|log| log.orders().len()).sum()
    }
}

/// Due time and latency of an acknowledged order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencySample {
    /// Due time; in a closed loop the time of sending.
    pub due: Instant,
    pub latency: Duration,
}
