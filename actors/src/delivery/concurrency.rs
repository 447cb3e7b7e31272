//! Concurrency limit of webhook deliveries over all endpoints.
//!
//! Half of the permits is reserved for endpoints with nothing in flight: endpoints that hang keep their
//! permits until the attempt times out, and the others still get one. Failing endpoints share a quarter for
//! what they send in parallel, the last and the requested attempts of a backlog, so that many of them at once
//! do not slow those that work.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of deliveries in flight in a process. Each uses a socket and, with its buffers, some 50
/// KiB: 100 MiB in total.
pub const MAX_IN_FLIGHT: usize = 2_048;

/// The concurrency limit of a process.
#[derive(Debug, Clone)]
pub struct ConcurrencyLimit {
    permits: Arc<Semaphore>,
    reserved: usize,
    reserved_if_failing: usize,
}

impl ConcurrencyLimit {
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(limit)),
            reserved: limit / 2,
            reserved_if_failing: limit - limit / 4,
        }
    }

    /// A permit for an endpoint that has `in_flight` deliveries in flight; `None` if the limit is reached.
    #[must_use]
    pub fn try_acquire(&self, in_flight: usize, is_failing: bool) -> Option<OwnedSemaphorePermit> {
        let reserved = if is_failing {
            self.reserved_if_failing
        } else {
            self.reserved
        };
        if in_flight > 0 && self.permits.available_permits() <= reserved {
            return None;
        }
        Arc::clone(&self.permits).try_acquire_owned().ok()
    }

    /// The number of available permits.
    #[must_use]
    pub fn available(&self) -> usize {
        self.permits.available_permits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_half_is_for_endpoints_with_nothing_in_flight() {
        let limiter = ConcurrencyLimit::new(4);
        let first: Vec<_> = (0..2).map_while(|n| limiter.try_acquire(n, false)).collect();
        assert_eq!((first.len(), limiter.available()), (2, 2));
        assert!(
            limiter.try_acquire(2, false).is_none(),
            "the reserved half is for other endpoints"
        );
        let others: Vec<_> = (0..3).map_while(|_| limiter.try_acquire(0, true)).collect();
        assert_eq!((others.len(), limiter.available()), (2, 0));
        drop((first, others));
        assert_eq!(limiter.available(), 4);
    }

    #[test]
    fn failing_endpoints_leave_three_quarters_to_the_others() {
        let limiter = ConcurrencyLimit::new(8);
        let failing: Vec<_> = (0..8).map_while(|n| limiter.try_acquire(n, true)).collect();
        assert_eq!((failing.len(), limiter.available()), (2, 6));
        assert!(limiter.try_acquire(1, true).is_none());
        let healthy: Vec<_> = (0..8).map_while(|n| limiter.try_acquire(n, false)).collect();
        assert_eq!((healthy.len(), limiter.available()), (2, 4));
        assert!(
            limiter.try_acquire(0, true).is_some(),
            "a probe of another endpoint"
        );
    }
}
