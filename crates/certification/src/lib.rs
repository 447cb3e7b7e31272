//! Certification: checks from sandbox traffic whether a partner's client is ready for production.
//!
//! | Step | Where |
//! |---|---|
//! | a request or delivery is answered; the observation is queued in memory | [`observer`], sandbox only |
//! | the service writes observations in the background | `src/housekeeping/recorder.rs` |
//! | stored observations are evaluated on demand | [`evaluation`], pure |
//!
//! Observing never delays or fails a request. Only ids, hashes and statuses are stored.

pub mod delivered;
pub mod evaluation;
pub mod observed_sender;
pub mod observer;
pub mod session;

pub use evaluation::evaluate;
pub use observer::Observer;
