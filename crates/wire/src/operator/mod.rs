//! Bodies and filters of the operator listener, one module per noun.

pub mod actors;
pub mod catalogue;
pub mod categories;
pub mod change_requests;
pub mod credentials;
pub mod decision;
pub mod limit_use;
#[cfg(test)]
mod limits;
pub mod live;
pub mod metrics;
pub mod monitoring;
pub mod operation;
pub mod operators;
pub mod orders;
pub mod partners;
mod patch_field;
pub mod payouts;
pub mod products;
pub mod reconciliation;
pub mod refusals;
pub mod search;
pub mod sessions;
pub mod settings;
pub mod stock;
pub mod table;
mod text;
pub mod vendors;
pub mod wallets;
pub mod webhooks;

use self::operation::Route;

/// All operations below [`operation::ADMIN_PREFIX`], by module.
pub const OPERATIONS: [&[Route]; 13] = [
    partners::OPERATIONS,
    credentials::OPERATIONS,
    wallets::OPERATIONS,
    catalogue::OPERATIONS,
    vendors::OPERATIONS,
    stock::OPERATIONS,
    orders::OPERATIONS,
    payouts::OPERATIONS,
    reconciliation::OPERATIONS,
    webhooks::OPERATIONS,
    operators::OPERATIONS,
    change_requests::OPERATIONS,
    monitoring::OPERATIONS,
];
