//! What does a run remember, and with which memories does it begin? The orders that were sent, for duplicates and reads of
//! this run or of a later one; and the moment of each order, where it matters what happened just then.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sent_orders::SentLog;

/// What is kept beside the tally.
#[derive(Clone, Debug, Default)]
pub struct RunHistory {
    /// The orders that were sent.
    pub orders: OrderHistory,
    /// When each acknowledged order was due, and what it took: 16 bytes an order more.
    pub latency_samples: bool,
}

/// Which orders a run knows.
#[derive(Clone, Debug, Default)]
pub enum OrderHistory {
    /// Its own, if its traffic asks for orders from before.
    #[default]
    AsNeeded,
    /// Its own, all of them: a later run asks for them.
    Keep,
    /// Those of an earlier run, as if it had sent them itself.
    FromRun(Arc<SentOrders>),
}

/// The orders of a run that were answered for good.
#[derive(Debug, Default)]
pub struct SentOrders(Vec<SentLog>);

impl SentOrders {
    /// Of each thread's, what was answered for good.
    pub(crate) fn from_logs(logs: impl IntoIterator<Item = SentLog>) -> Self {
        Self(logs.into_iter().map(SentLog::into_answered).collect())
    }

    /// The part of one of so many threads: each order is in one.
    pub(crate) fn part(&self, index: usize, threads: usize) -> SentLog {
        let mut part = SentLog::default();
        let orders = self.0.iter().flat_map(SentLog::orders);
        for order in orders.skip(index).step_by(threads) {
            part.insert_past(order.clone());
        }
        part
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.iter().map(|log| log.orders().len()).sum()
    }
}

/// An order that was acknowledged: when it was due, and what it took from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencySample {
    /// When its sending began, or should have.
    pub due: Instant,
    pub latency: Duration,
}
