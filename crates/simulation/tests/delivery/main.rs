//! Tests of webhook delivery over the in-memory outbox, on paused time.

// Test helpers: a failed unwrap is a failed test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod attempts;
mod harness;
mod leases;
mod ordering;
mod receiver;
mod replays;
