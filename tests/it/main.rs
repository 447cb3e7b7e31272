//! The service from outside: black box over HTTP, against its own Postgres, with the signer of `load/` as the partner.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends where it cannot go on"
)]

mod support;

#[path = "../support/database.rs"]
#[allow(dead_code, reason = "shared with other suites")]
mod database;

mod access;
mod access_commands;
mod approvals;
mod bookings;
mod by_hand;
mod canaries;
mod cancellation;
mod catalogue;
mod certifications;
mod certified_receivers;
mod client_addresses;
mod codes;
mod command_help;
mod commands;
mod deliveries;
mod edges;
mod events;
mod exit_codes;
mod expiry;
mod fulfilment;
mod idempotency;
mod imports;
mod kept_stock;
mod killed_deliveries;
mod ledger;
mod lists;
mod lost_answers;
mod nodes;
mod openapi;
mod operators;
mod order_search;
mod orders;
mod overload;
mod partners;
mod paths;
mod payouts;
mod payouts_of_operators;
mod pending;
mod production;
mod purchases;
mod races;
mod rate_limits;
mod reconciliation;
mod refusals;
mod restarts;
mod retry_after;
mod revocations;
mod rotation;
mod routes;
mod scopes;
mod shared_deliveries;
mod shelves;
mod shutdown;
mod signatures;
mod sudden_ends;
mod terminal;
mod traces;
mod unchanged;
mod validation;
mod vendor_protocol;
mod vendors;
mod voids;
mod waiting;
mod webhooks;
mod wire;
