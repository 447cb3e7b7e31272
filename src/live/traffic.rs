//! Counts of the partners' requests since the last sample.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use vouchsafe_actors::duration_histogram::{DurationCounts, DurationHistogram};

/// Four steps to a power of two, up to 33 s.
type OrderTimes = DurationHistogram<4, 96>;

/// Requests of partners since the last [`Traffic::take`].
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    requests: AtomicU32,
    unavailable: AtomicU32,
    orders: AtomicU32,
    order_times: OrderTimes,
}

/// The counts of a period.
#[derive(Debug, Default)]
pub(super) struct TrafficCounts {
    pub(super) requests: u32,
    /// Answered with 503.
    pub(super) unavailable: u32,
    /// `POST /orders` that were answered with 2xx.
    pub(super) orders: u32,
    /// Of all `POST /orders`.
    pub(super) order_times: DurationCounts<4, 96>,
}

impl Traffic {
    /// Counts a request of a partner.
    pub(crate) fn record(&self, is_order: bool, status: u16, duration: Duration) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if status == 503 {
            self.unavailable.fetch_add(1, Ordering::Relaxed);
        }
        if is_order {
            self.order_times.record(duration);
            if (200..300).contains(&status) {
                self.orders.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The counts since the last call.
    pub(super) fn take(&self) -> TrafficCounts {
        TrafficCounts {
            requests: self.requests.swap(0, Ordering::Relaxed),
            unavailable: self.unavailable.swap(0, Ordering::Relaxed),
            orders: self.orders.swap(0, Ordering::Relaxed),
            order_times: self.order_times.take_counts(),
        }
    }
}

impl TrafficCounts {
    pub(super) fn add(&mut self, other: &Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.unavailable = self.unavailable.saturating_add(other.unavailable);
        self.orders = self.orders.saturating_add(other.orders);
        self.order_times.add(&other.order_times);
    }
}
