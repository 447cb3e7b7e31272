//! `/stock`: import, levels and voiding of vouchers.

mod blocks;
mod csv;
mod import;
pub(super) mod ingest;
mod levels;
mod ndjson;
pub(super) mod rows;
mod void;

pub(super) use blocks::{Block, BlockSplitter};
pub(super) use csv::FieldSplitter;
pub use import::{IDLE_LIMIT, ImportReport, import};
pub use levels::{LevelBody, list_levels};
pub(super) use rows::{LineError, decode_line, strip_byte_order_mark};
pub use void::{VoidReport, VoidRequest, void};
