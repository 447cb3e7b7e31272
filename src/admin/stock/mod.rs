//! `/stock`: vouchers coming in, what became of them, and taking them out of sale.

mod blocks;
mod csv;
mod import;
pub(super) mod intake;
mod levels;
mod ndjson;
pub(super) mod rows;
mod void;

pub(super) use import::{Report, import};
pub(super) use levels::{LevelBody, levels};
pub(super) use void::{Answer as VoidReport, VoidRequest, void};
