//! Bodies and filters of `/payouts`.

pub mod body;
pub mod request;

use vouchsafe_domain::payout::{PayoutFilter, PayoutStatus};

use crate::error_body::InvalidRequest;
use crate::page::PageRequest;

/// Filters of `GET /payouts`.
pub const FILTERS: [&str; 1] = ["status"];

/// Parses the filters that partners and operators share.
///
/// # Errors
/// `VALIDATION_FAILED` for a value that does not parse.
pub fn parse_filter(page: &PageRequest) -> Result<PayoutFilter, InvalidRequest> {
    Ok(PayoutFilter {
        partner_id: None,
        status: page.enum_filter("status", &PayoutStatus::ALL, PayoutStatus::as_str)?,
    })
}
