//! Tests of the engine over the in-memory store: flows, faults, races and random walks. Deterministic, on paused time.

// Test helpers: a failed unwrap is a failed test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod aborted;
mod commit_faults;
mod fixture;
mod idempotency;
mod nodes;
mod operations;
mod order_counts;
mod orders;
mod panics;
mod partial_fulfilment;
mod payouts;
mod procurement;
mod races;
mod refusals;
mod stock;
mod top_ups;
mod walks;

/// Each body is a test on paused time.
macro_rules! simulation_tests {
    ($(async fn $name:ident() $body:block)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $name() {
                vouchsafe_simulation::simulation::run_local(async $body).await;
            }
        )*
    };
}
pub(crate) use simulation_tests;
