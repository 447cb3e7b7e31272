//! The store on a database: delivery log, stock, keyring, certification, reconciliation, audit checkpoints
//! and `verify`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests panic on failure"
)]

mod archive;
mod audit_checkpoints;
mod audit_export;
mod audit_partner;
mod catalogue;
mod certification;
mod change_requests;
mod code_spelling;
mod contract_migration;
mod delivery_log;
mod failover;
mod grants;
mod interrupted_migration;
mod interrupted_rotation;
mod interrupted_steps;
mod key_rotation;
mod keyring;
mod lost_data_key;
mod private_postgres;
mod purges;
mod quarantine;
mod rate_limit_usage;
mod recent_changes;
mod reconciliation;
mod reencryption;
mod server_check;
mod service_role;
mod slow_key_manager;
mod stock;
mod stock_levels;
mod store_errors;
mod traffic;
mod transit;
mod verify;
mod void;
mod webhook_leases;
