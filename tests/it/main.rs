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
mod bookings;
mod catalogue;
mod codes;
mod commands;
mod expiry;
mod idempotency;
mod imports;
mod ledger;
mod lists;
mod operators;
mod order_search;
mod orders;
mod partners;
mod paths;
mod pending;
mod production;
mod races;
mod refusals;
mod restarts;
mod routes;
mod scopes;
mod shelves;
mod shutdown;
mod signatures;
mod unchanged;
mod validation;
mod voids;
mod waiting;
mod wire;
