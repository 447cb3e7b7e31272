//! Vouchsafe: a service from which partners order vouchers over a signed REST API.
//!
//! An order passes through the layers from top to bottom: `http` (routes, wire format) → the engine's flows → purse and
//! shelf → journal and lane → `store` (the commit statement).

pub mod api;
pub mod certification;
pub mod cli;
mod config_change;
pub mod housekeeping;
pub mod metrics;
pub mod readiness;
pub mod sandbox;
pub mod secrets;
pub mod service;
pub mod settings;
pub mod startup;
pub mod telemetry;
