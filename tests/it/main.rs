//! Black-box tests: the service over HTTP on its own Postgres, with the clients of `load/`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests panic on failure")]

mod support;

#[path = "../support/database.rs"]
#[allow(dead_code, reason = "shared with other suites")]
mod database;

mod access;
mod approvals;
mod bookings;
mod canaries;
mod cancellation;
mod catalogue;
mod catalogue_admin;
mod certification;
mod client_addresses;
mod codes;
mod command_help;
mod commands;
mod conditional_requests;
mod credential_commands;
mod credential_rotation;
mod deliveries;
mod events;
mod exit_codes;
mod expiry;
mod fulfilment;
mod http_edge_cases;
mod idempotency;
mod import_progress;
mod imports;
mod killed_deliveries;
mod killed_operations;
mod ledger;
mod lists;
mod long_polling;
mod lost_responses;
mod manual_fulfilment;
mod migrations;
mod multi_node;
mod openapi;
mod operator_cancellation;
mod operator_payouts;
mod operators;
mod order_errors;
mod order_search;
mod orders;
mod overload;
mod partner_catalogues;
mod partners;
mod payouts;
mod pending;
mod production;
mod purchases;
mod races;
mod rate_limits;
mod reconciliation;
mod request_bodies;
mod request_paths;
mod restarts;
mod retry_after;
mod routes;
mod shared_deliveries;
mod shutdown;
mod signatures;
mod stock_reservations;
mod trace_ids;
mod validation;
mod vendor_protocol;
mod vendors;
mod voided_stock;
mod webhook_certification;
mod webhooks;
