//! Where actors run: on arbiters of their own in the service, on the current thread in tests with paused time.

use actix::{Actor, Addr, ArbiterHandle, Context};

/// Starts actors.
#[derive(Debug, Clone)]
pub enum Spawner {
    /// On the thread that asks, which must be in a `LocalSet`.
    Here,
    /// On these arbiters, by the key's hash. Never empty.
    Arbiters(Vec<ArbiterHandle>),
}

impl Spawner {
    /// Starts an actor; `place` picks its arbiter.
    pub fn start<A>(&self, place: u64, make: impl FnOnce(&mut Context<A>) -> A + Send + 'static) -> Addr<A>
    where
        A: Actor<Context = Context<A>>,
    {
        match self {
            Self::Here => A::create(make),
            Self::Arbiters(arbiters) => {
                let index = usize::try_from(place % arbiters.len() as u64).unwrap_or_default();
                A::start_in_arbiter(&arbiters[index], make)
            }
        }
    }
}
