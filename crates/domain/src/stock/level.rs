//! Voucher counts of a SKU by state, and the results of voiding codes.

use time::{Date, OffsetDateTime};

use crate::labels::labels;
use crate::product::Sku;

labels! {
    /// Whether stock is short.
    pub enum Shortage: "lowercase",
        "Shortage: `low` (of a product that is still sold: fewer vouchers available than its `low_stock_at`, or for less than a week \
         at the rate of the last seven days), `empty`." {
        Low,
        Empty,
    }
}

/// Available vouchers that expire in a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "sqlx", derive(sqlx::FromRow))]
pub struct ExpiringStock {
    /// First day of the month; `None`: they never expire.
    pub month: Option<Date>,
    pub vouchers: i64,
}

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

/// The number of vouchers of a SKU that were sold at an earlier time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoldBaseline {
    pub at: OffsetDateTime,
    pub sold: i64,
}

/// Sales of a SKU within the last seven days.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecentSales {
    /// Vouchers sold, less those that came back.
    pub sold: i64,
    /// How long the available vouchers last at this rate; `None` if nothing was sold.
    pub days_left: Option<f64>,
}

impl StockLevel {
    /// The sales since `baseline`, which is a week old or, for a SKU that is measured for a shorter time,
    /// younger. The rate counts at least a day, so that the sales of an hour are not taken for those of each
    /// hour.
    #[must_use]
    pub fn sales_since(&self, baseline: SoldBaseline, now: OffsetDateTime) -> RecentSales {
        let sold = (self.sold - baseline.sold).max(0);
        let days = ((now - baseline.at).as_seconds_f64() / 86_400.0).clamp(1.0, 7.0);
        #[allow(clippy::cast_precision_loss, reason = "numbers of vouchers")]
        let days_left = (sold > 0).then(|| self.free as f64 * days / sold as f64);
        RecentSales {
            sold,
            days_left: days_left.map(|days| (days * 10.0).round() / 10.0),
        }
    }
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

#[cfg(test)]
mod tests {
    use time::Duration;
    use time::macros::datetime;

    use super::*;
    use crate::money::Amount;

    #[test]
    fn days_left_follow_the_sales_of_a_week_or_of_at_least_a_day() {
        let now = datetime!(2026-11-20 12:00 UTC);
        let level = StockLevel {
            sku: Sku {
                product_id: "amzn-us".parse().unwrap(),
                denomination: Amount::from_minor(2_500),
            },
            loaded: 200,
            free: 100,
            quarantined: 0,
            sold: 100,
            void: 0,
            expired: 0,
            next_expiry: None,
        };
        for (age, sold_then, sold, days_left) in [
            (Duration::days(7), 30, 70, Some(10.0)),
            (Duration::days(60), 30, 70, Some(10.0)),
            (Duration::days(2), 0, 100, Some(2.0)),
            (Duration::hours(1), 0, 100, Some(1.0)),
            (Duration::days(7), 100, 0, None),
            // More came back than was sold.
            (Duration::days(7), 120, 0, None),
        ] {
            let baseline = SoldBaseline {
                at: now - age,
                sold: sold_then,
            };
            let expected = RecentSales { sold, days_left };
            assert_eq!(level.sales_since(baseline, now), expected, "{age}");
        }
        let empty = StockLevel { free: 0, ..level };
        let baseline = SoldBaseline { at: now, sold: 0 };
        assert_eq!(empty.sales_since(baseline, now).days_left, Some(0.0));
    }
}
