//! HTTP client of the API: connection, signature, credentials, typed responses.
//!
//! Rule: this crate shares no code with the service, so a bug of the service cannot hide in the code that
//! checks it.

pub mod origin;
pub mod partner;
pub mod partner_file;
pub mod signer;
pub mod wire;

mod http;

pub use self::http::{ApiResponse, Client, DEFAULT_TIMEOUT, RequestFailure};
