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

pub mod evaluation;
pub(crate) mod recorder;
pub mod observation;
pub mod session;
pub mod check;
pub mod delivered;
pub mod observer;

pub use evaluation::{CheckResult, CheckState, evaluate};
pub use observation::{Observation, RequestHash, ObservationKind};
pub use check::Check;
pub use observer::Observer;
