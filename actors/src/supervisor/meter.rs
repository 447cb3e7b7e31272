//! What operators see of one actor: how many messages wait, how many it handled, how often it was rebuilt.
//!
//! Actix tells nothing of a mailbox, so it is counted here: every message carries a [`Queued`], which counts itself in
//! when it is made and out when it goes, handled or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use serde::Serialize;
use utoipa::ToSchema;

/// The counters of one actor. They outlive its incarnations.
#[derive(Debug, Default)]
pub struct ActorMeter {
    depth: AtomicUsize,
    handled: AtomicU64,
    restarts: AtomicU32,
    ready: AtomicBool,
    /// When it was last asked for, by the directory's own count of milliseconds.
    asked_at_ms: AtomicU64,
}

impl ActorMeter {
    /// Counts a message in; it counts itself out.
    #[must_use]
    pub fn queue(self: &Arc<Self>) -> Queued {
        self.depth.fetch_add(1, Ordering::Relaxed);
        Queued(Arc::clone(self))
    }

    /// A message is being handled.
    pub fn handle(&self) {
        self.handled.fetch_add(1, Ordering::Relaxed);
    }

    /// The actor knows its state, or does not yet.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }

    pub(super) fn asked(&self, at_ms: u64) {
        self.asked_at_ms.store(at_ms, Ordering::Relaxed);
    }

    pub(super) fn asked_at_ms(&self) -> u64 {
        self.asked_at_ms.load(Ordering::Relaxed)
    }

    pub(super) fn restarted(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
        self.set_ready(false);
    }

    pub(super) fn reading(&self) -> Reading {
        Reading {
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

/// A message that waits in a mailbox.
#[derive(Debug)]
pub struct Queued(Arc<ActorMeter>);

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.depth.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What an actor is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActorState {
    /// It waits for its state from the store.
    Loading,
    /// It decides.
    Ready,
    /// It has ended, and is rebuilt when somebody asks for it.
    Ended,
}

/// The counters of one actor at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Reading {
    /// Messages that wait.
    pub mailbox_depth: usize,
    /// Messages handled since the process began.
    pub handled: u64,
    /// How often it was rebuilt.
    pub restarts: u32,
    /// What it is doing.
    pub state: ActorState,
}
