//! Vouchsafe: a service from which partners order vouchers over a signed REST API.
//!
//! The way of an order is always downward: `http` (route, wire) → the engine's flows → purse, shelf → journal, lane →
//! `store` (the commit statement).

pub mod access;
pub mod admin;
mod body;
pub mod certification;
mod change;
pub mod cli;
mod day;
mod delivery;
pub mod errors;
pub mod housekeeping;
pub mod http;
pub mod json;
pub mod keyring;
pub mod metrics;
mod openapi;
mod outgoing;
pub mod postgres;
mod procurement;
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
pub mod vault;
pub mod vendor;
