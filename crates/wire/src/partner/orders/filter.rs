//! Filters of `GET /orders`.

use vouchsafe_domain::order::OrderStatus;
use vouchsafe_domain::order::filter::OrderFilter;

use crate::error_body::InvalidRequest;
use crate::page::PageRequest;
use crate::period;

pub const FILTERS: [&str; 4] = ["status", "reference", "from", "to"];

/// Parses the filters that partners and operators share.
///
/// # Errors
/// `VALIDATION_FAILED` for a value that does not parse.
pub fn parse_filter(page: &PageRequest) -> Result<OrderFilter, InvalidRequest> {
    Ok(OrderFilter {
        order_id: None,
        status: page.enum_filter("status", &OrderStatus::ALL, OrderStatus::as_str)?,
        reference: page.filter("reference").map(ToOwned::to_owned),
        period: period::from_page(page)?,
    })
}
