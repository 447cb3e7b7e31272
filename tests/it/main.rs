//! The service from outside: black box over HTTP, against its own Postgres, with the signer of `load/` as the partner.

mod support;

mod catalogue;
mod codes;
mod idempotency;
mod orders;
mod refusals;
mod shutdown;
mod signatures;
