//! Vouchsafe: a service from which partners order vouchers over a signed REST API.
//!
//! An order passes through the layers from top to bottom: `http` (routes, wire format) → the engine's flows → purse and
//! shelf → journal and lane → `store` (the commit statement).

pub mod api;
pub mod certification;
pub mod cli;
mod config_change;
mod delivery;
pub mod housekeeping;
mod http_client;
mod iso_date;
pub mod keyring;
pub mod metrics;
pub mod procurement;
pub mod readiness;
pub mod reconciliation;
pub mod sandbox;
pub mod secrets;
pub mod service;
pub mod settings;
pub mod startup;
pub mod store;
pub mod telemetry;
mod tls;
pub mod trace;
