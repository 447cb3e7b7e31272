//! Request authentication (API keys, IP allowlists, request signatures, rate limits, idempotency keys) and
//! encryption ([`vault`]).
//!
//! Independent of the web framework and the database: header values arrive as bytes, addresses and the time
//! as arguments, and each check returns a typed result. The checks of a request, in order:
//!
//! | Check | File | Error |
//! |---|---|---|
//! | client address behind trusted proxies | [`client_address`] | |
//! | each header occurs once | [`headers`] | like a wrong value |
//! | key and secret are known and in force | [`registry`] | `INVALID_CREDENTIALS` |
//! | the address is on both allowlists | [`allowlist`] | `IP_NOT_ALLOWED` |
//! | the partner is not suspended | [`registry`] | `PARTNER_SUSPENDED` |
//! | the key has a place for another request in flight | [`concurrency_limit`] | `TOO_MANY_REQUESTS_IN_FLIGHT` |
//! | the timestamp is recent and the bytes are signed | [`signature`], [`framing`] | `TIMESTAMP_OUT_OF_RANGE`, `INVALID_SIGNATURE` |
//! | rate limit of the key and request class | [`limits`], [`sliding_window`], [`shared_window`], [`rate_limiter`] | `RATE_LIMIT_EXCEEDED` |
//! | idempotency key of a write | [`idempotency`] | `MISSING_IDEMPOTENCY_KEY`, `INVALID_IDEMPOTENCY_KEY` |
//!
//! Failed authentications are counted per client address ([`auth_failures`]); above the limit they are
//! answered with `RATE_LIMIT_EXCEEDED`.

pub mod auth_failures;
pub mod client_address;
pub mod concurrency_limit;
pub mod console_url;
pub mod credential;
pub mod credential_summary;
pub mod environment;
pub mod framing;
pub mod headers;
pub mod idempotency;
pub mod listener;
pub mod metrics_access;
pub mod operator_token;
pub mod rate_limiter;
pub mod registry;
pub mod secret;
pub mod secret_file;
pub mod secure_url;
pub mod security_event;
pub mod shared_window;
pub mod signature;
pub mod sliding_window;
pub mod vault;
pub mod webhook_signature;
pub mod webhook_url;
