//! HTTP API: the routes of the partner and the operator listener, middleware, and documentation.

mod body;
pub mod docs;
pub mod error;
pub mod etag;
mod header;
mod health;
mod list_request;
pub mod middleware;
pub mod operator;
pub mod partner;
mod request_outcome;
pub mod routing;
