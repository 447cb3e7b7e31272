//! Voucher counts of a SKU by state, and the results of voiding codes.

use time::Date;

use crate::labels::labels;
use crate::product::Sku;

/// Voucher counts of a SKU. `loaded` is the sum of the other five.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "sqlx", derive(sqlx::FromRow))]
pub struct StockLevel {
    #[cfg_attr(feature = "sqlx", sqlx(flatten))]
    pub sku: Sku,
    /// Vouchers ever loaded. One that was returned and sold again counts once.
    pub loaded: i64,
    pub free: i64,
    /// Free, but perhaps sold on a lost timeline of the database.
    pub quarantined: i64,
    /// Belong to an order.
    pub sold: i64,
    /// Removed from sale by an operator.
    pub void: i64,
    pub expired: i64,
    /// Earliest expiry of the free vouchers; `None` if none of them expires.
    pub next_expiry: Option<Date>,
}

labels! {
    /// Result of the void of one code.
    pub enum CodeVoidOutcome: "SCREAMING_SNAKE_CASE",
        "Result for one code: `VOIDED` (removed from sale), `ALREADY_OUT` (removed from sale earlier), `SOLD` \
         (belongs to an order), `UNKNOWN` (the product has no such code)." {
        Voided,
        /// Removed from sale earlier.
        AlreadyOut,
        Sold,
        Unknown,
    }
}
