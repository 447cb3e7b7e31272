//! Traffic and sales of all nodes, added up in the database for 30 days.

#![allow(
    clippy::missing_errors_doc,
    reason = "`StoreError` says when an operation of the store fails"
)]

mod sales;
mod traffic;

pub use sales::SalesRow;
pub use traffic::{PeriodCounts, Traffic, TrafficRow};
