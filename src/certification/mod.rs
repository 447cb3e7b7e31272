//! Certification: checks from sandbox traffic whether a partner's client is ready for production.
//!
//! | Step | Where |
//! |---|---|
//! | a request or delivery is answered; the observation is queued in memory | [`observer`], sandbox only |
//! | observations are written in the background | `recorder` |
//! | stored observations are evaluated on demand | [`evaluation`], pure |
//!
//! Observing never delays or fails a request. Only ids, hashes and statuses are stored.

pub mod check;
pub mod delivered;
pub mod evaluation;
pub mod observation;
pub mod observer;
pub(crate) mod recorder;
pub mod session;

pub use check::Check;
pub use evaluation::{CheckResult, CheckState, evaluate};
pub use observation::{Observation, ObservationKind, RequestHash};
pub use observer::Observer;
