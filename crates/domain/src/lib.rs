//! Domain types: plain data without actors, storage or network.

pub mod approval;
pub mod audit;
pub mod catalogue;
pub mod clock;
pub mod delivery;
pub mod envelope;
pub mod event;
pub mod event_kind;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
pub mod idempotency;
pub mod ids;
pub mod ledger;
pub mod money;
pub mod order;
pub mod payout;
pub mod product;
pub mod schema;
pub mod scope;
pub mod stock;
pub mod timestamp;
pub mod transition;
pub mod voucher;
