//! Ports of the engine, which the service implements: storage, vendors. Those of webhook delivery are in
//! [`delivery::outbox`](crate::delivery::outbox).
//!
//! | module | responsibility |
//! |---|---|
//! | `record` | what one decision writes, and the verdict on it |
//! | `store` | the store, and a lane's connection to it |
//! | `vendors` | vendors and purchase records |

pub mod record;
pub mod store;
pub mod vendors;
