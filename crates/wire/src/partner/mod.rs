//! Bodies and filters of the partner listener, one module per noun.

pub mod categories;
pub mod certification;
pub mod credentials;
pub mod events;
mod limits;
pub mod me;
pub mod operation;
pub mod operations;
pub mod orders;
pub mod payouts;
pub mod products;
pub mod reconciliation;
pub mod sandbox;
pub mod voucher_access;
pub mod vouchers;
pub mod webhooks;
