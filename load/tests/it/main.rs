//! Tests of the load generator against a small fake service with at most one defect, and against raw sockets
//! that end mid-exchange.

#![allow(clippy::unwrap_used, reason = "test helpers may panic")]

mod command_line;
mod connection;
mod drive;
mod fake;
mod peer;
mod postgres;
mod release_history;
mod report;
mod run_and_audit;
mod signature;
mod verdict;
