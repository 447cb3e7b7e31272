//! Black-box test harness: a running service and clients for partners and operators.
//!
//! All tests of the binary share one service; each test creates its own partner and product. The service stops with the test
//! process: a shell holds one end of a pipe and stops the service when the other end closes.

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
