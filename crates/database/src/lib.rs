//! Access to Postgres below the statements: connections by class of work, a runtime of their own, batched statements, and what an
//! error says about a write.
//!
//! | Module | Subject |
//! |---|---|
//! | [`database`] | handle to the database; all work runs as tasks of one runtime |
//! | [`connection_class`], [`connection_pool`] | connections of each kind of work, with their limits and metrics |
//! | [`batcher`] | requests that arrive during a statement share the next one |
//! | [`database_url`] | `DATABASE_URL` |
//! | [`error`] | whether a write may have happened, and whether a retry can succeed |

pub mod batcher;
pub mod connection_class;
pub mod connection_pool;
pub mod database;
pub mod database_url;
pub mod error;
