//! Access: who is calling, from where, did they sign it, and have they asked before?
//!
//! Nothing here knows a web framework or a database: header values come in as bytes, addresses and the time as
//! arguments, and every answer is a typed verdict. The way of a request through it:
//!
//! | Step | File | Refused as |
//! |---|---|---|
//! | where it comes from | [`client_address`] | |
//! | each header appears once | [`headers`] | like a wrong value |
//! | key and secret are known and in force | [`register`] | `INVALID_CREDENTIALS` |
//! | the address is on both lists | [`allowlist`] | `IP_NOT_ALLOWED` |
//! | the partner is not suspended | [`register`] | `PARTNER_SUSPENDED` |
//! | the time is near and the bytes are signed | [`signature`], [`framing`] | `TIMESTAMP_OUT_OF_RANGE`, `INVALID_SIGNATURE` |
//! | there is room in the window of its key and class | [`limits`], [`window`], [`rate_limits`] | `RATE_LIMIT_EXCEEDED` |
//! | the key of a repeatable write | [`idempotency`] | `MISSING_IDEMPOTENCY_KEY` |
//!
//! Whatever fails to authenticate is counted by its address ([`failures`]), and past the limit answered
//! `RATE_LIMIT_EXCEEDED` too.

pub mod allowlist;
pub mod client_address;
pub mod credential;
pub mod environment;
pub mod auth_failures;
pub mod framing;
pub mod headers;
pub mod idempotency;
pub mod limits;
pub mod rate_limiter;
pub mod registry;
pub mod signature;
pub mod sliding_window;
