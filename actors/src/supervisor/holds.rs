//! How many holds of an actor are open, over all its incarnations: a rebuild loads only when there are none, so that what
//! it reads from the store is the whole truth.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Counts the open holds on one actor's state.
#[derive(Debug, Default)]
pub struct OpenHolds {
    open: AtomicUsize,
    none_left: Notify,
}

impl OpenHolds {
    /// Counts a hold in; it counts itself out when it goes.
    #[must_use]
    pub fn begin(self: &Arc<Self>) -> OpenHold {
        self.open.fetch_add(1, Ordering::AcqRel);
        OpenHold(Arc::clone(self))
    }

    /// Waits until no hold is open.
    pub async fn all_settled(&self) {
        loop {
            let changed = self.none_left.notified();
            if self.open.load(Ordering::Acquire) == 0 {
                return;
            }
            changed.await;
        }
    }
}

/// An open hold.
#[derive(Debug)]
pub struct OpenHold(Arc<OpenHolds>);

impl Drop for OpenHold {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.none_left.notify_waiters();
        }
    }
}
