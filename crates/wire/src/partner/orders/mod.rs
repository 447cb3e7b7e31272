//! Bodies of `/orders`.

pub mod body;
pub mod cancel;
pub mod cap_error;
pub mod item_error;
pub mod request;
