//! Readiness of a listener: whether it accepts requests, and how many are in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Counts the requests in flight. It rejects requests until [`ReadinessGate::open`].
#[derive(Debug, Default)]
pub(crate) struct ReadinessGate {
    in_flight: AtomicUsize,
    open: AtomicBool,
    /// Distinguishes draining from starting: stays true after the first [`ReadinessGate::open`].
    pub(crate) was_opened: AtomicBool,
}

impl ReadinessGate {
    /// Accepts requests from now on.
    pub(crate) fn open(&self) {
        self.was_opened.store(true, Ordering::SeqCst);
        self.open.store(true, Ordering::SeqCst);
    }

    /// Whether the gate accepts requests.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Whether the gate was opened once: it is draining now, not starting, if it is closed.
    pub(crate) fn was_opened(&self) -> bool {
        self.was_opened.load(Ordering::Relaxed)
    }

    /// Rejects new requests and waits until no request is in flight.
    pub(crate) async fn drain(&self) {
        self.open.store(false, Ordering::SeqCst);
        while self.in_flight.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(DRAIN_POLL_INTERVAL).await;
        }
    }

    /// Counts a request as in flight; `None` while the gate is closed.
    pub(crate) fn try_enter(self: &Arc<Self>) -> Option<InFlightGuard> {
        // Counted before `open` is read: otherwise a drain could see no request in flight while this one is
        // accepted.
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let guard = InFlightGuard(Arc::clone(self));
        self.open.load(Ordering::SeqCst).then_some(guard)
    }
}

/// Counts a request as in flight until dropped, also when its client disconnects.
pub(crate) struct InFlightGuard(Arc<ReadinessGate>);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}
