//! Bodies and filters of `/orders`.

pub mod body;
pub mod cancel;
pub mod filter;
pub mod request;
