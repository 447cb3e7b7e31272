//! Deliveries on paused time: a day of failures in a moment, what is in which order, and what a lost lease costs.
//!
//! Rule: nothing sleeps for real; the outbox in memory tells times as the one in Postgres does.

// Helpers of tests: a failed unwrap is a failed test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod attempts;
mod order;
mod owners;
mod receiver;
mod replays;
mod stage;
