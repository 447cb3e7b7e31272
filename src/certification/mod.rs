//! Certification: is a partner's client ready for production, as far as the sandbox can see it?
//!
//! | step | where |
//! |---|---|
//! | a request or a delivery is answered; what was seen of it waits in memory | [`watch`], in the sandbox alone |
//! | it is written down, off the request's way | [`keeper`] |
//! | what is written down is judged when somebody asks for it | [`judge`], pure |
//!
//! Rule: seeing never delays a request and never fails one; production sees nothing. What is kept are
//! ids, hashes and statuses.

pub mod judge;
pub(crate) mod keeper;
pub mod observation;
pub mod open;
pub mod point;
pub mod taken;
pub mod watch;

pub use judge::{Finding, State, judge};
pub use observation::{Observation, RequestHash, Seen};
pub use point::Point;
pub use watch::Watch;
