//! Tests of the engine over the in-memory store: flows, faults, races and random walks. Deterministic, on paused time.

// Test helpers: a failed unwrap is a failed test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod aborted;
mod idempotency;
mod operations;
mod nodes;
mod orders;
mod panics;
mod payouts;
mod partial_fulfilment;
mod procurement;
mod races;
mod refusals;
mod fixture;
mod stock;
mod top_ups;
mod commit_faults;
mod walks;

/// Each body is a test on paused time.
macro_rules! simulation_tests {
    ($(async fn $name:ident() $body:block)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $name() {
                vouchsafe_actors::testing::simulation::run_local(async $body).await;
            }
        )*
    };
}
pub(crate) use simulation_tests;
