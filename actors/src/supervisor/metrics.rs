//! Actor metrics: mailbox depth, handled messages and restarts.
//!
//! Actix does not expose the mailbox depth. Every message carries a [`MailboxSlot`], which counts the message from its
//! creation until it is dropped, handled or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The counters of one actor; all its incarnations share them.
#[derive(Debug, Default)]
pub struct ActorMetrics {
    depth: AtomicUsize,
    handled: AtomicU64,
    restarts: AtomicU32,
    ready: AtomicBool,
    /// When the actor was last requested, in milliseconds since the directory was created.
    last_used_at_ms: AtomicU64,
}

impl ActorMetrics {
    /// Counts a queued message; dropping the slot uncounts it.
    #[must_use]
    pub fn enqueue(self: &Arc<Self>) -> MailboxSlot {
        self.depth.fetch_add(1, Ordering::Relaxed);
        MailboxSlot(Arc::clone(self))
    }

    /// Counts a handled message.
    pub fn record_handled(&self) {
        self.handled.fetch_add(1, Ordering::Relaxed);
    }

    /// Records whether the actor has loaded its state.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }

    pub(super) fn touch(&self, at_ms: u64) {
        self.last_used_at_ms.store(at_ms, Ordering::Relaxed);
    }

    pub(super) fn last_used_ms(&self) -> u64 {
        self.last_used_at_ms.load(Ordering::Relaxed)
    }

    pub(super) fn record_restart(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
        self.set_ready(false);
    }

    pub(super) fn stats(&self) -> ActorStats {
        ActorStats {
            mailbox_depth: self.depth.load(Ordering::Relaxed),
            handled: self.handled.load(Ordering::Relaxed),
            restarts: self.restarts.load(Ordering::Relaxed),
            state: if self.ready.load(Ordering::Relaxed) {
                ActorState::Ready
            } else {
                ActorState::Loading
            },
        }
    }
}

/// Counts one message in a mailbox.
#[derive(Debug)]
pub struct MailboxSlot(Arc<ActorMetrics>);

impl Drop for MailboxSlot {
    fn drop(&mut self) {
        self.0.depth.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The state of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActorState {
    /// Loading its state from the store.
    Loading,
    /// Ready to decide.
    Ready,
    /// Ended; the next request restarts it.
    Ended,
}

/// A snapshot of an actor's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActorStats {
    /// Messages in the mailbox.
    pub mailbox_depth: usize,
    /// Messages handled since the process started.
    pub handled: u64,
    /// Number of restarts after a panic.
    pub restarts: u32,
    /// State of the actor.
    pub state: ActorState,
}
