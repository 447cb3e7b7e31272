//! Tests of webhook delivery over the in-memory store, on paused time.

mod attempts;
mod harness;
mod leases;
mod ordering;
mod receiver;
mod replays;
