//! Access to Postgres below the statements: connections by class of work, a runtime of their own, batched
//! statements, and what an error says about a write.
//!
//! | Module | Subject |
//! |---|---|
//! | [`database`] | handle to the database; all work runs as tasks of one runtime |
//! | [`connection_class`], [`connection_pool`] | connections of each kind of work, with their limits and metrics |
//! | [`batcher`] | requests that arrive during a statement share the next one |
//! | [`query`] | parts of queries: limits and time ranges |
//! | [`database_url`] | `DATABASE_URL` |
//! | [`servers`] | failover between the servers of `DATABASE_URL` |
//! | `session` | settings of a connection, also through a pooler |
//! | [`schema`] | migrations, SQL functions and rights |
//! | `erased_work` | work without its type, so that running it is compiled once |
//! | [`error`] | whether a write may have happened, and whether a retry can succeed |

pub mod batcher;
pub mod connection_class;
pub mod connection_pool;
pub mod database;
pub mod database_url;
mod erased_work;
pub mod error;
pub mod query;
pub mod schema;
pub mod server_check;
pub mod servers;
mod session;
pub mod transaction;

/// Makes an `async fn` return a boxed future. Its code is compiled here, once, and not in each crate that
/// awaits it; an allocation is nothing beside the round trip to the database.
pub use async_recursion::async_recursion as boxed;

pub use self::session::open;
