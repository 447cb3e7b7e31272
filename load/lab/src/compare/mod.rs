//! Comparison of service, peer and floor, in turns on one machine and one Postgres, so that other load on the machine
//! affects all of them.
//!
//! Rule: a figure counts only if its audit passed and every order of its turn was sold. Ratios are taken within a
//! round.

pub(crate) mod audit_method;
mod contender;
pub(crate) mod maintenance;
mod report;
pub mod rounds;
pub mod turn;
