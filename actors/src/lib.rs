//! The engine of Vouchsafe: it decides orders in memory and makes them durable in group commits.

pub mod delivery;
pub mod domain;
pub mod engine;
pub mod flows;
pub mod inventory;
pub mod journal;
pub mod keys;
pub mod procurement;
pub mod store;
pub mod supervisor;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod wallet;
pub mod watch;

/// The target of all spans, those of requests too: what is exported of a trace, and no log line. Those of the engine are of
/// the level of debugging, so that they cost nothing where nobody follows them.
pub const SPANS: &str = "vouchsafe::trace";
