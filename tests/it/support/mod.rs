//! A running service, and the people who use it.
//!
//! One service is started for all tests of the binary, each test makes its own partner and product in it. A service dies
//! with the test process: a shell holds its end of a pipe, and ends the service when ours closes.

mod answer;
mod checked;
mod database;
mod described;
mod operator;
mod partner;
mod patience;
mod receiver;
mod service;
pub(crate) mod wire;

pub(crate) use answer::{accepted, json_of, kept_refusal, refused, text_of};
pub(crate) use checked::CheckedOperator;
pub(crate) use database::Database;
pub(crate) use described::Listener;
pub(crate) use operator::{Operator, Sale, unique};
pub(crate) use partner::{Partner, line_of, order_of};
pub(crate) use patience::{SOON, eventually, until};
pub(crate) use receiver::{Heard, Mood, Receiver};
pub(crate) use service::{Instance, PROGRAM, free_addresses, shared, signal};
