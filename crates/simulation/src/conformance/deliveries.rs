//! Conformance cases of the delivery outbox.
//!
//! Time advances only when a case says so, in steps long enough that a slow machine makes no difference.

mod changes;
mod cursors;
mod endpoint;
mod failures;
mod leases;
mod ordering;
mod replays;

pub use changes::*;
pub use cursors::*;
pub use endpoint::*;
pub use failures::*;
pub use leases::*;
pub use ordering::*;
pub use replays::*;
