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
#[path = "reconciliation/midnight.rs"]
mod midnight;
#[path = "reconciliation/due_days.rs"]
mod due_days;
#[path = "reconciliation/drifts.rs"]
mod drifts;
#[path = "reconciliation/memory.rs"]
mod memory;
#[path = "reconciliation/test_shop.rs"]
mod test_shop;
#[path = "reconciliation/exclusivity.rs"]
mod exclusivity;
