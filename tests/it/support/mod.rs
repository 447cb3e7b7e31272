//! Black-box test harness: a running service and clients for partners and operators.
//!
//! All tests of the binary share one service; each test creates its own partner and product. The service stops with the test
//! process: a shell holds one end of a pipe and stops the service when the other end closes.

mod checked;
mod database;
mod openapi_check;
mod operator;
mod partner;
pub(crate) mod raw_http;
mod receiver;
mod response;
mod service;
mod wait;

pub(crate) use checked::CheckedOperator;
pub(crate) use database::Database;
pub(crate) use openapi_check::Listener;
pub(crate) use operator::{Operator, Sale, unique};
pub(crate) use partner::{Partner, order_body, order_line};
pub(crate) use receiver::{Behavior, ReceivedEvent, Receiver};
pub(crate) use response::{expect_error, expect_stored_error, expect_success, json_of, text_of};
pub(crate) use service::{Instance, PROGRAM, free_addresses, send_signal, shared};
pub(crate) use wait::{WAIT_TIMEOUT, eventually, wait_until};
