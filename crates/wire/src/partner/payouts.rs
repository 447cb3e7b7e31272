//! Bodies of `/payouts`.

pub mod body;
pub mod request;
