//! Filters of `GET /purchases`.

use vouchsafe_domain::purchase::view::{PurchaseFilter, PurchaseState};

use crate::error_body::InvalidRequest;
use crate::page::PageRequest;

pub const FILTERS: [&str; 3] = ["vendor", "state", "order_id"];

/// Parses the filters.
///
/// # Errors
/// `VALIDATION_FAILED` for a value that does not parse.
pub fn parse_filter(page: &PageRequest) -> Result<PurchaseFilter, InvalidRequest> {
    Ok(PurchaseFilter {
        vendor: page.filter("vendor").map(ToOwned::to_owned),
        state: page.enum_filter("state", &PurchaseState::ALL, PurchaseState::as_str)?,
        order_id: page.parsed_filter("order_id")?,
    })
}
