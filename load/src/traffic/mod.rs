//! Scenario files, and the requests drawn from them.

pub mod generator;
pub mod pace;
pub mod request;
pub mod scenario;
pub mod workload;
