//! Reconciliation of our vouchers with a vendor's records: the daily job.

pub mod code_leak;
pub mod job;
