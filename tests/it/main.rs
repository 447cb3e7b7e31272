//! The service from outside: black box over HTTP, against its own Postgres, with the signer of `load/` as the partner.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends where it cannot go on"
)]

mod support;

mod access;
mod catalogue;
mod codes;
mod idempotency;
mod ledger;
mod orders;
mod pending;
mod races;
mod refusals;
mod restarts;
mod shutdown;
mod signatures;
mod validation;
mod wire;
