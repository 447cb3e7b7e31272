//! Certification of a partner's client: its checks, and what was observed of it. Only ids, hashes and
//! statuses.

pub mod check;
pub mod observation;
pub mod result;
