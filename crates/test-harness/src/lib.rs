//! Test harness: the service as a process, databases, and clients for partners and operators.
//!
//! The tests of a binary share one service; each test creates its own partner and product. A service stops
//! with the test process: a shell holds one end of a pipe and stops the service when the other end closes.

// Test support: a failed unwrap is a failed test, and its line says where.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod checked;
mod database;
mod instance;
mod openapi_check;
mod operator;
mod order;
mod partner;
pub mod postgres_proxy;
mod postgres_server;
mod prepared_data;
mod private_server;
mod process;
mod product;
pub mod raw_http;
mod receiver;
mod response;
mod service_database;
mod simulator;
pub mod timing_verdict;
mod transit_stub;
mod wait;

pub use checked::{CheckedOperator, CheckedPartner};
pub use database::Database;
pub use instance::{Instance, NO_LIMIT, shared};
pub use openapi_check::Listener;
pub use operator::Operator;
pub use order::{id_of, line_counts, stages, statuses};
pub use partner::Partner;
pub use postgres_server::{PostgresServer, database_url, postgres_program};
pub use private_server::PrivateServer;
pub use process::{disk_directory, free_address, processes_of, program, scratch_directory, send_signal};
pub use product::{Sale, order_body, order_line, unique};
pub use receiver::{Behavior, ReceivedEvent, Receiver};
pub use response::{expect_error, expect_stored_error, expect_success, json_of, text_of};
pub use service_database::ServiceDatabase;
pub use simulator::VendorSimulator;
pub use transit_stub::TransitStub;
pub use wait::{WAIT_TIMEOUT, eventually, spawn, wait_until};
