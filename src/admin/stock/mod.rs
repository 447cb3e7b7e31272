//! `/stock`: vouchers coming in, what became of them, and taking them out of sale.

mod blocks;
mod csv;
mod import;
mod intake;
mod levels;
mod ndjson;
mod rows;
mod void;

pub(super) use import::import;
pub(super) use levels::levels;
pub(super) use void::void;
