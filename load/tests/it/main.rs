//! Does the generator see what a service does to it? A small service that is honest or lies in one way, and raw
//! sockets that end where no service would.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may fail it")]

mod command_line;
mod connection;
mod drive;
mod fake;
mod history;
mod peer;
mod report;
mod run_and_audit;
mod signature;
