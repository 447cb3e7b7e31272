//! Bodies of `/stock`, and readers of lists of vouchers.

pub mod expiries;
pub mod import;
pub mod level;
pub mod quarantine;
pub mod row;
pub mod spreadsheet;
pub mod void;
pub mod voucher_list;
