//! Wire format of both listeners: operations, request and response bodies, list filters, cursors, limits,
//! error codes.
//!
//! Plain data and pure functions: no web framework, database or actor.

mod arguments;
pub mod column;
pub mod csv;
pub mod error_body;
pub mod error_code;
#[cfg(test)]
mod error_page;
pub mod filter;
pub mod health;
pub mod json;
pub mod limit;
pub mod limit_use;
pub mod operation;
pub mod operator;
pub mod page;
pub mod partner;
pub mod preference;
pub mod query;
pub mod schema;
