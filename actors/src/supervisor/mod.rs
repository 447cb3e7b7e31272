//! Routes requests to actors, and keeps the actors alive.

mod directory;
mod holds;
mod meter;
mod patience;
mod spawner;
mod waiting;

pub use directory::{Directory, Found, Lineage, Total};
pub use holds::{OpenHold, OpenHolds};
pub use meter::{ActorMeter, ActorState, Queued, Reading};
pub use patience::{DECISION_PATIENCE, Patience, Undecided};
pub use spawner::{Arbiters, Spawner};
pub use waiting::WaitingLine;

/// The answer of an actor: at once, or when something has changed.
#[derive(Debug)]
pub enum Reply<A> {
    Now(A),
    /// It comes here; a channel that closes says that the actor died.
    Later(tokio::sync::oneshot::Receiver<A>),
    /// None comes: as many wait for the actor as may.
    Crowded,
}
