//! Actor metrics: mailbox depth, handled messages, handling time, restarts and the last error.
//!
//! Actix does not expose the mailbox depth. Every message carries a [`MailboxSlot`], which counts the message
//! from its creation until it is dropped, handled or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::duration_histogram::DurationHistogram;

/// From 1 µs, for a message, to 33 s, for a webhook attempt. Small, because there may be 100,000 actors.
type HandlingTimes = DurationHistogram<1, 26>;

/// The time of one message in so many is measured: two readings of the clock for each message would be a
/// fiftieth of an order's work.
const MEASURED_MESSAGES: u64 = 8;

/// The counters of one actor; all its incarnations share them.
#[derive(Debug, Default)]
pub struct ActorMetrics {
    depth: AtomicUsize,
    handled: AtomicU64,
    handling_times: HandlingTimes,
    restarts: AtomicU32,
    state: AtomicU8,
    last_error: Mutex<Option<Box<ActorError>>>,
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

    /// Counts a handled message and the time that it took.
    pub fn record_handled(&self, duration: Duration) {
        self.handled.fetch_add(1, Ordering::Relaxed);
        self.handling_times.record(duration);
    }

    /// Keeps an error as the actor's last one. The message contains no code and no secret.
    pub fn record_error(&self, message: String) {
        let error = ActorError {
            at: Instant::now(),
            message,
        };
        *self.last_error.lock() = Some(Box::new(error));
    }

    pub fn set_state(&self, state: ActorState) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    pub(super) fn touch(&self, at_ms: u64) {
        self.last_used_at_ms.store(at_ms, Ordering::Relaxed);
    }

    pub(super) fn last_used_ms(&self) -> u64 {
        self.last_used_at_ms.load(Ordering::Relaxed)
    }

    pub(super) fn record_restart(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
        self.record_error("the actor panicked".to_owned());
        self.set_state(ActorState::Loading);
    }

    pub(super) fn stats(&self) -> ActorStats {
        ActorStats {
            mailbox_depth: self.depth.load(Ordering::Relaxed),
            handled: self.handled.load(Ordering::Relaxed),
            restarts: self.restarts.load(Ordering::Relaxed),
            state: ActorState::of(self.state.load(Ordering::Relaxed)),
        }
    }

    pub(super) fn details(&self) -> ActorDetails {
        let last_error = self.last_error.lock();
        let times = self.handling_times.counts();
        ActorDetails {
            handling_p50: times.quantile(50),
            handling_p99: times.quantile(99),
            last_error: last_error.as_deref().cloned(),
        }
    }
}

/// Counts one message in a mailbox.
#[derive(Debug)]
pub struct MailboxSlot(Arc<ActorMetrics>);

impl MailboxSlot {
    /// The actor begins to handle the message.
    #[must_use]
    pub fn start_handling(self) -> MessageHandling {
        let is_measured = self
            .0
            .handled
            .load(Ordering::Relaxed)
            .is_multiple_of(MEASURED_MESSAGES);
        MessageHandling {
            started_at: is_measured.then(Instant::now),
            slot: self,
        }
    }
}

impl Drop for MailboxSlot {
    fn drop(&mut self) {
        self.0.depth.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A message that its actor handles. It is recorded as handled when this is dropped, after a panic too.
#[derive(Debug)]
pub struct MessageHandling {
    slot: MailboxSlot,
    /// `None` for a message that is not measured.
    started_at: Option<Instant>,
}

impl Drop for MessageHandling {
    fn drop(&mut self) {
        let metrics = &self.slot.0;
        metrics.handled.fetch_add(1, Ordering::Relaxed);
        if let Some(started_at) = self.started_at {
            metrics.handling_times.record(started_at.elapsed());
        }
    }
}

/// The state of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ActorState {
    /// Loading its state from the store.
    Loading,
    /// Ready to decide.
    Ready,
    /// Holds nothing and waits for work.
    Idle,
    /// Ended; the next request restarts it.
    Ended,
}

impl ActorState {
    const fn of(number: u8) -> Self {
        match number {
            number if number == Self::Ready as u8 => Self::Ready,
            number if number == Self::Idle as u8 => Self::Idle,
            number if number == Self::Ended as u8 => Self::Ended,
            _ => Self::Loading,
        }
    }

    /// Whether requests to the actor wait.
    pub(super) const fn is_ready(self) -> bool {
        matches!(self, Self::Ready | Self::Idle)
    }
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

impl ActorStats {
    /// Messages in the mailbox and messages handled, to compare how busy actors are.
    pub(super) const fn load(&self) -> (usize, u64) {
        (self.mailbox_depth, self.handled)
    }
}

/// What is read of an actor only when it is shown.
#[derive(Debug, Clone, Default)]
pub struct ActorDetails {
    /// Upper bound of the handling time of half of the messages; `None` before the first.
    pub handling_p50: Option<Duration>,
    /// Upper bound of the handling time of 99 of 100 messages.
    pub handling_p99: Option<Duration>,
    pub last_error: Option<ActorError>,
}

/// An error of an actor.
#[derive(Debug, Clone)]
pub struct ActorError {
    pub at: Instant,
    pub message: String,
}
