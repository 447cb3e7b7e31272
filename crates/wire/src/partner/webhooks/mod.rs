//! Bodies of `/webhooks`.

pub mod body;
pub mod replay;
pub mod request;
pub mod test;
