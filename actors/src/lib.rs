//! The engine of Vouchsafe: it decides orders in memory and makes them durable in group commits.

pub mod domain;
pub mod engine;
pub mod flows;
pub mod inventory;
pub mod journal;
pub mod keys;
pub mod store;
pub mod supervisor;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod wallet;
pub mod watch;
