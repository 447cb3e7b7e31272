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
