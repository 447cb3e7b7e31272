//! Counts of the partners' requests since the last sample.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use vouchsafe_actors::duration_histogram::{DurationCounts, DurationHistogram};

/// Four steps to a power of two, up to 33 s.
type OrderTimes = DurationHistogram<4, 96>;

/// Requests of partners since the last [`Traffic::take`].
#[derive(Debug)]
pub(crate) struct Traffic {
    taken_at: Mutex<Instant>,
    requests: AtomicU32,
    unavailable: AtomicU32,
    orders: AtomicU32,
    order_times: OrderTimes,
}

/// The counts of a period.
#[derive(Debug, Default)]
pub(super) struct TrafficCounts {
    pub(super) period: Duration,
    pub(super) requests: u32,
    /// Answered with 503.
    pub(super) unavailable: u32,
    /// `POST /orders` that were answered with 2xx.
    pub(super) orders: u32,
    /// Times of these orders.
    pub(super) order_times: DurationCounts<4, 96>,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            taken_at: Mutex::new(Instant::now()),
            requests: AtomicU32::new(0),
            unavailable: AtomicU32::new(0),
            orders: AtomicU32::new(0),
            order_times: OrderTimes::default(),
        }
    }
}

impl Traffic {
    /// Counts a request of a partner.
    pub(crate) fn record(&self, is_order: bool, status: u16, duration: Duration) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if status == 503 {
            self.unavailable.fetch_add(1, Ordering::Relaxed);
        }
        if is_order && (200..300).contains(&status) {
            self.order_times.record(duration);
            self.orders.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The counts since the last call.
    pub(super) fn take(&self) -> TrafficCounts {
        let now = Instant::now();
        let mut taken_at = self.taken_at.lock();
        let period = now.saturating_duration_since(std::mem::replace(&mut *taken_at, now));
        // A request is counted before its refusal: taken in this order, the part is not more than the whole.
        let unavailable = self.unavailable.swap(0, Ordering::Relaxed);
        TrafficCounts {
            period,
            unavailable,
            requests: self.requests.swap(0, Ordering::Relaxed),
            orders: self.orders.swap(0, Ordering::Relaxed),
            order_times: self.order_times.take_counts(),
        }
    }
}

impl TrafficCounts {
    pub(super) fn per_second(&self, count: u32) -> f64 {
        f64::from(count) / self.period.as_secs_f64().max(f64::EPSILON)
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.period += other.period;
        self.requests = self.requests.saturating_add(other.requests);
        self.unavailable = self.unavailable.saturating_add(other.unavailable);
        self.orders = self.orders.saturating_add(other.orders);
        self.order_times.add(&other.order_times);
    }
}
