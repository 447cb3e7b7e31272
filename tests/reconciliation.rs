//! Reconciliation in the store: drifts, retained results, due days, exclusive runs and memory use.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests panic on failure"
)]

#[path = "support/database.rs"]
#[allow(dead_code, reason = "shared with other suites")]
mod database;
#[path = "reconciliation/drifts.rs"]
mod drifts;
#[path = "reconciliation/due_days.rs"]
mod due_days;
#[path = "reconciliation/exclusivity.rs"]
mod exclusivity;
#[path = "reconciliation/memory.rs"]
mod memory;
#[path = "reconciliation/midnight.rs"]
mod midnight;
#[path = "reconciliation/test_shop.rs"]
mod test_shop;
