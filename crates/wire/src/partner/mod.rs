//! Bodies and filters of the partner listener, one module per noun.

pub mod categories;
pub mod certification;
pub mod credentials;
pub mod events;
pub mod orders;
pub mod payouts;
pub mod products;
pub mod reconciliation;
pub mod transactions;
pub mod vouchers;
pub mod wallets;
pub mod webhooks;
