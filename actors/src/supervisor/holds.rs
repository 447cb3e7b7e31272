//! Counts the open holds of an actor over all its incarnations. A new incarnation loads its state only when
//! no hold is open, so that what it reads from the store is complete.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Counter of the open holds on one actor's state.
#[derive(Debug, Default)]
pub struct OpenHolds {
    open: AtomicUsize,
    none_left: Notify,
}

impl OpenHolds {
    /// Counts a new hold; dropping the result uncounts it.
    #[must_use]
    pub fn open_hold(self: &Arc<Self>) -> OpenHold {
        self.open.fetch_add(1, Ordering::AcqRel);
        OpenHold(Arc::clone(self))
    }

    /// Waits until no hold is open.
    pub async fn wait_until_none(&self) {
        loop {
            let none_left = self.none_left.notified();
            if self.open.load(Ordering::Acquire) == 0 {
                return;
            }
            none_left.await;
        }
    }
}

#[derive(Debug)]
pub struct OpenHold(Arc<OpenHolds>);

impl Drop for OpenHold {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.none_left.notify_waiters();
        }
    }
}
