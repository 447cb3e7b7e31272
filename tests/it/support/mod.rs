//! A running service, and the people who use it.
//!
//! One service is started for all tests of the binary, each test makes its own partner and product in it. A service dies
//! with the test process: a shell holds its end of a pipe, and ends the service when ours closes.

mod response;
mod checked;
mod database;
mod openapi_check;
mod operator;
mod partner;
mod wait;
mod receiver;
mod service;
pub(crate) mod raw_http;

pub(crate) use response::{expect_success, json_of, expect_stored_error, expect_error, text_of};
pub(crate) use checked::CheckedOperator;
pub(crate) use database::Database;
pub(crate) use openapi_check::Listener;
pub(crate) use operator::{Operator, Sale, unique};
pub(crate) use partner::{Partner, order_line, order_body};
pub(crate) use wait::{WAIT_TIMEOUT, eventually, wait_until};
pub(crate) use receiver::{ReceivedEvent, Behavior, Receiver};
pub(crate) use service::{Instance, PROGRAM, free_addresses, shared, send_signal};
