//! Vouchsafe: a service from which partners order vouchers over a signed REST API.
//!
//! The way of an order is always downward: `http` (route, wire) → the engine's flows → purse, shelf → journal, lane →
//! `store` (the commit statement).

pub mod access;
pub mod errors;
pub mod postgres;
pub mod store;
pub mod trace;
pub mod vault;
