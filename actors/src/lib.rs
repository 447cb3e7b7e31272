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
mod reached_caps;
pub mod supervisor;
pub mod wallet;
