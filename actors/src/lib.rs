//! Vouchsafe's order engine: decides orders in memory and makes them durable by group commit.

pub mod delivery;
pub mod duration_histogram;
pub mod engine;
pub mod flows;
pub mod idempotency;
pub mod inventory;
pub mod journal;
pub mod long_poll;
pub mod out_of_stock;
pub mod ports;
pub mod procurement;
pub mod supervisor;
pub mod wallet;

/// Tracing target of every exported span, the request spans of the service included. The engine's spans have level DEBUG,
/// so they cost nothing while no subscriber enables them. Log output filters this target out.
pub const SPANS: &str = "vouchsafe::telemetry::trace";
