//! Black-box tests: the service over HTTP on its own Postgres, with the clients of `load/`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests panic on failure"
)]

mod support;

#[path = "../support/database.rs"]
#[allow(dead_code, reason = "shared with other suites")]
mod database;

mod access;
mod credential_commands;
mod approvals;
mod bookings;
mod manual_fulfilment;
mod canaries;
mod cancellation;
mod catalogue;
mod certification;
mod webhook_certification;
mod client_addresses;
mod codes;
mod command_help;
mod commands;
mod deliveries;
mod http_edge_cases;
mod events;
mod exit_codes;
mod expiry;
mod fulfilment;
mod idempotency;
mod imports;
mod stock_reservations;
mod killed_deliveries;
mod ledger;
mod lists;
mod lost_responses;
mod multi_node;
mod openapi;
mod operators;
mod order_search;
mod orders;
mod overload;
mod partners;
mod request_paths;
mod payouts;
mod operator_payouts;
mod pending;
mod production;
mod purchases;
mod races;
mod rate_limits;
mod reconciliation;
mod order_errors;
mod restarts;
mod retry_after;
mod operator_cancellation;
mod credential_rotation;
mod routes;
mod partner_catalogues;
mod shared_deliveries;
mod catalogue_admin;
mod shutdown;
mod signatures;
mod killed_operations;
mod import_progress;
mod trace_ids;
mod conditional_requests;
mod validation;
mod vendor_protocol;
mod vendors;
mod voided_stock;
mod long_polling;
mod webhooks;
mod request_bodies;
