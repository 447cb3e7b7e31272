//! In-process idempotency: deduplicates concurrent requests with one key and caches recent responses.
//!
//! Both are optimizations. The commit decides whether a key is known; a response that is not cached is found
//! in the store.

mod in_flight;
mod response_cache;

pub use in_flight::{IdempotencyKeys, KeyGuard, KeyOutcome, KeyStatus, Waiter};
