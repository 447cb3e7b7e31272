//! Bodies of `/payouts`.

pub mod body;
pub mod request;

/// Filters of `GET /payouts`.
pub const FILTERS: [&str; 1] = ["status"];
