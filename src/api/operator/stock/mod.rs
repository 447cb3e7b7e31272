//! `/stock`: import, levels and voiding of vouchers.

mod import;
pub(super) mod ingest;
mod levels;
mod quarantine;
mod void;

pub(super) use import::import;
pub(super) use levels::{list_expiries, list_levels};
pub(super) use quarantine::{quarantine, release, withdraw_sold};
pub(super) use void::void;
use vouchsafe_wire::operator::stock;

use crate::api::endpoint::Endpoint;
use crate::api::operator::endpoint::bind;

pub(super) fn endpoints() -> [Endpoint; stock::OPERATIONS.len()] {
    [
        bind(stock::LIST_STOCK, list_levels),
        bind(stock::LIST_STOCK_EXPIRIES, list_expiries),
        bind(stock::IMPORT_STOCK, import),
        bind(stock::VOID_STOCK, void),
        bind(stock::QUARANTINE_STOCK, quarantine),
        bind(stock::WITHDRAW_SOLD_STOCK, withdraw_sold),
        bind(stock::RELEASE_STOCK, release),
    ]
}
