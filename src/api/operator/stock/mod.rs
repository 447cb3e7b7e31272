//! `/stock`: import, levels and voiding of vouchers.

mod import;
pub(super) mod ingest;
mod levels;
mod void;

pub(super) use import::import;
pub(super) use levels::list_levels;
pub(super) use void::void;
