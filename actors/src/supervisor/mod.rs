//! Actor supervision: routing by key, restarts, decision timeouts, actor metrics.

mod decision_timeout;
mod directory;
mod holds;
mod metrics;
mod spawner;
mod wait_queue;

pub use decision_timeout::{DECISION_TIMEOUT, DecisionDeadline, DecisionError};
pub use directory::{ActorRef, ActorScan, ActorTotals, BusyActor, Directory, Lineage};
pub use holds::{OpenHold, OpenHolds};
pub use metrics::{
    ActorDetails, ActorError, ActorMetrics, ActorState, ActorStats, MailboxSlot, MessageHandling,
};
pub use spawner::{Arbiters, Spawner};
pub use wait_queue::WaitQueue;

/// An actor's reply: immediate, deferred, or none.
#[derive(Debug)]
pub enum Reply<A> {
    Now(A),
    /// Sent later on this channel; a closed channel means that the actor died.
    Later(tokio::sync::oneshot::Receiver<A>),
    /// None: the actor's wait queue is full.
    WaitQueueFull,
}
