//! The engine over the store in memory: its flows, what breaks them, and random walks through all of it.
//!
//! Rule: nothing sleeps for real and nothing is left to chance; each test says in its name what it shows.

// Helpers of tests: a failed unwrap is a failed test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod aborted;
mod idempotency;
mod life;
mod nodes;
mod orders;
mod panics;
mod payouts;
mod picking;
mod procurement;
mod races;
mod refusals;
mod shop;
mod stock;
mod top_ups;
mod unknown;
mod walks;

/// Each body is a test in a world of its own, on paused time.
macro_rules! in_a_world {
    ($(async fn $name:ident() $body:block)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $name() {
                vouchsafe_actors::testing::world::live(async $body).await;
            }
        )*
    };
}
pub(crate) use in_a_world;
