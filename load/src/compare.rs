//! How does the service stand beside what it could be compared with? Service, peer and floor, in turns on one machine and
//! one Postgres, so that what the machine does meanwhile happens to all of them.
//!
//! Rule: a figure counts only if its audit passed and every order of its turn was sold. Ratios are taken within a round.

pub mod contender;
pub mod statistics;
pub mod audit_method;
pub mod report;
pub mod rounds;
pub mod search;
pub mod turn;
pub(crate) mod maintenance;
