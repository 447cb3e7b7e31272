//! Bodies of `/payouts`.

pub mod body;
mod iban;
pub mod request;
