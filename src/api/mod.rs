//! HTTP API: the routes of the partner and the operator listener, middleware, documentation, and the mount of
//! the console.

mod body;
pub(crate) mod console;
mod credential_rotation;
mod documentation;
mod endpoint;
pub(crate) mod error;
pub(crate) mod etag;
mod header;
mod health;
mod ledger;
mod limit_use;
mod list_request;
pub(crate) mod middleware;
#[cfg(test)]
mod openapi_check;
pub(crate) mod operator;
pub(crate) mod partner;
mod path_id;
mod request_outcome;
pub(crate) mod routing;
mod static_file;
