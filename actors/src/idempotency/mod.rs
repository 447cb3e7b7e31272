//! In-process idempotency: deduplicates concurrent requests with one key and caches recent responses.
//!
//! Both are optimizations. The commit decides whether a key is known; a response that is not cached is found in the store.

mod response_cache;
mod in_flight;

pub use in_flight::{KeyStatus, KeyOutcome, KeyGuard, IdempotencyKeys, Waiter};
