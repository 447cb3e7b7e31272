//! A running service, and the people who use it.
//!
//! One service is started for all tests of the binary, each test makes its own partner and product in it. The service
//! dies with the test process: a shell holds its end of a pipe, and ends the service when ours closes.

mod operator;
mod partner;
mod service;

pub(crate) use operator::{Operator, Sale};
pub(crate) use partner::{Partner, json_of, order_of};
pub(crate) use service::{Instance, shared};
