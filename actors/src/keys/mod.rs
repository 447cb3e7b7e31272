//! Idempotency inside one process: which keys are being answered right now, and which answers were given lately.
//!
//! Rule: both are shortcuts. What decides whether a key is known is the commit; an answer that is not found here is
//! found in the store.

mod answers;
mod in_flight;

pub use in_flight::{Begun, Ended, KeyGuard, Keys, Waiter};
