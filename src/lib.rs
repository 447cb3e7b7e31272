//! Vouchsafe: a service from which partners order vouchers over a signed REST API.
//!
//! An order passes through [`api::middleware`] and the handler in [`api::partner`] to the engine's flows
//! (`vouchsafe_actors::flows`), purse and shelf, journal and lane, and the commit statement of
//! `vouchsafe_store`. [`startup`] puts the parts together.

mod api;
mod config_change;
mod connections;
mod housekeeping;
mod live;
mod live_actors;
pub mod memory_protection;
mod metrics;
mod overview;
pub mod program;
mod readiness;
mod sandbox;
mod secret_files;
mod secrets;
mod service;
mod service_manager;
pub mod settings;
pub mod startup;
mod tls;
pub mod vendor_simulator;
