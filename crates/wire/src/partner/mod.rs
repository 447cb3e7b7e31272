//! Bodies and filters of the partner listener, one module per noun.

pub mod categories;
pub mod orders;
pub mod payouts;
pub mod products;
pub mod transactions;
pub mod vouchers;
pub mod wallets;
