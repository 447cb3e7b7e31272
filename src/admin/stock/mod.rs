//! `/stock`: vouchers coming in, what became of them, and taking them out of sale.

mod blocks;
mod csv;
mod import;
pub(super) mod intake;
mod levels;
mod ndjson;
pub(super) mod rows;
mod void;

pub(super) use blocks::{Block, Blocks};
pub(super) use csv::Fields;
pub(super) use import::{IDLE_LIMIT, Report, import};
pub(super) use levels::{LevelBody, levels};
pub(super) use rows::{Reason as LineFault, bare, check};
pub(super) use void::{Answer as VoidReport, VoidRequest, void};
