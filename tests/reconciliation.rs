//! Books that are compared with what was bought: which drifts are found, what stays of an earlier result, whose turn it is,
//! and how much memory a large day takes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends where it cannot go on"
)]

#[path = "support/database.rs"]
#[allow(dead_code, reason = "shared with other suites")]
mod database;
#[path = "reconciliation/days.rs"]
mod days;
#[path = "reconciliation/due.rs"]
mod due;
#[path = "reconciliation/found.rs"]
mod found;
#[path = "reconciliation/large.rs"]
mod large;
#[path = "reconciliation/shop.rs"]
mod shop;
#[path = "reconciliation/turns.rs"]
mod turns;
