//! What operators look at: traffic, sales and health of webhook endpoints over time, which all nodes add
//! to in the database for 30 days, and the search.

#![allow(
    clippy::missing_errors_doc,
    reason = "`StoreError` says when an operation of the store fails"
)]

mod sales;
mod search;
mod traffic;
mod webhook_health;

pub use sales::SalesRow;
pub use search::Search;
pub use traffic::{PeriodCounts, Traffic, TrafficRow};
pub use webhook_health::{WebhookHealth, WebhookHours};
