//! Bodies of `/orders`.

pub mod body;
pub mod cancel;
pub mod request;
