//! Domain types: plain data without actors, storage or network.

pub mod idempotency;
pub mod approval;
pub mod catalogue;
pub mod clock;
pub mod audit;
pub mod delivery;
pub mod envelope;
pub mod event;
pub mod event_kind;
pub mod ids;
pub mod ledger;
pub mod timestamp;
pub mod money;
pub mod order;
pub mod payout;
pub mod product;
pub mod transition;
pub mod schema;
pub mod scope;
pub mod stock;
pub mod voucher;
