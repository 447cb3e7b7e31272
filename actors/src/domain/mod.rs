//! What the business is made of, as plain data: no actor, no storage, no network.

pub mod answer;
pub mod approval;
pub mod catalogue;
pub mod clock;
pub mod deed;
pub mod delivery;
pub mod envelope;
pub mod event;
pub mod event_kind;
pub mod ids;
pub mod ledger;
pub mod moment;
pub mod money;
pub mod order;
pub mod payout;
pub mod product;
pub mod progress;
pub mod schema;
pub mod scope;
pub mod stock;
pub mod voucher;
