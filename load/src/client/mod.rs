//! HTTP client of the partner API: connection, signature, credentials, typed responses, exact amounts.

pub mod money;
pub mod origin;
pub mod partner;
pub mod partner_file;
pub mod signer;
pub mod wire;

mod http;

pub use self::http::{ApiResponse, Client, DEFAULT_TIMEOUT, RequestFailure};
