//! Tests of the engine over the in-memory store: flows, faults, races and random walks. Deterministic, on
//! paused time.

// Test helpers: a failed unwrap is a failed test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod aborted;
mod caps;
mod commit_faults;
mod delivery;
mod fixture;
mod idempotency;
mod memory_faults;
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

/// Each body is a test on paused time. With arguments, the test gets the simulation and the node of
/// [`fixture::setup`], with this many gifts in stock, and everything settles after the body.
macro_rules! simulation_tests {
    (@run $body:block) => {
        async $body
    };
    (@run $body:block $sim:ident, $node:ident $(, gifts: $gifts:expr)?) => {
        async {
            let ($sim, $node) = $crate::fixture::setup().await;
            $($sim.import(&$crate::fixture::gift(), &[1; $gifts]);)?
            $body
            $crate::fixture::assert_settled(&$sim, &$node).await;
        }
    };
    ($($(#[$doc:meta])* async fn $name:ident($($setup:tt)*) $body:block)*) => {
        $(
            $(#[$doc])*
            #[tokio::test(start_paused = true)]
            async fn $name() {
                let test = $crate::simulation_tests!(@run $body $($setup)*);
                vouchsafe_simulation::walk::run_local(test).await;
            }
        )*
    };
}
pub(crate) use simulation_tests;
