//! Body and filter of `GET /stock`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use vouchsafe_domain::money::{Currency, Money};
use vouchsafe_domain::product::ProductId;
use vouchsafe_domain::stock::level::{RecentSales, Shortage, StockLevel};
use vouchsafe_domain::text_schema::FilterText;

use crate::filter::ListFilter;

/// Filter of the vouchers of SKUs.
#[derive(Debug, Default, Serialize, Deserialize, IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct SkuFilter {
    /// Filter by product.
    #[param(value_type = Option<FilterText>, inline, example = "amzn-us")]
    #[arg(long = "product", value_name = "PRODUCT")]
    pub product_id: Option<String>,
}

impl ListFilter for SkuFilter {}

/// Filter of stock levels.
#[derive(Debug, Default, Serialize, Deserialize, IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct LevelFilter {
    /// Filter by product.
    #[param(value_type = Option<FilterText>, inline, example = "amzn-us")]
    #[arg(long = "product", value_name = "PRODUCT")]
    pub product_id: Option<String>,
    /// Filter by shortage.
    #[param(inline)]
    #[arg(long, value_parser = vouchsafe_domain::arguments::enum_parser::<Shortage>())]
    pub shortage: Option<Shortage>,
}

impl ListFilter for LevelFilter {}

/// Number of vouchers of a SKU.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StockLevel)]
pub struct StockLevelBody {
    /// Product ID.
    product_id: ProductId,
    /// Face value in `currency`.
    denomination: Money,
    /// Currency of `denomination`.
    currency: Currency,
    /// Vouchers ever imported.
    loaded: i64,
    /// Vouchers available for sale.
    free: i64,
    /// Vouchers that are not sold until `POST /stock/quarantine/release`, because the database was restored.
    quarantined: i64,
    /// Vouchers that belong to orders.
    sold: i64,
    /// Vouchers taken out of sale by operators.
    void: i64,
    /// Vouchers that have expired.
    expired: i64,
    /// Earliest last valid day of the available vouchers.
    #[schema(required, value_type = Option<Date>)]
    next_expiry: Option<String>,
    /// Vouchers sold within the last seven days, less those that came back; for a SKU that is measured for a
    /// shorter time, since then. Null until the SKU is measured, at most a minute.
    #[schema(required)]
    sold_7d: Option<i64>,
    /// Days that the available vouchers last at this rate; null if nothing was sold.
    #[schema(required)]
    days_left: Option<f64>,
    #[serde(skip)]
    minor: i64,
}

impl StockLevelBody {
    #[must_use]
    pub fn of(level: StockLevel, sales: Option<RecentSales>, currency: Currency) -> Self {
        Self {
            minor: level.sku.denomination.minor(),
            denomination: level.sku.denomination.of(currency),
            product_id: level.sku.product_id,
            currency,
            loaded: level.loaded,
            free: level.free,
            quarantined: level.quarantined,
            sold: level.sold,
            void: level.void,
            expired: level.expired,
            next_expiry: level.next_expiry.map(|day| day.to_string()),
            sold_7d: sales.map(|sales| sales.sold),
            days_left: sales.and_then(|sales| sales.days_left),
        }
    }

    /// The position after this entry, as [`SkuCursor`] parses it.
    #[must_use]
    pub fn cursor(&self) -> String {
        format!("{} {}", self.product_id, self.minor)
    }
}

/// Page position: product and denomination.
pub struct SkuCursor {
    pub product_id: String,
    pub denomination: i64,
}

impl FromStr for SkuCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (product_id, denomination) = text.split_once(' ').ok_or(())?;
        Ok(Self {
            product_id: product_id.to_owned(),
            denomination: denomination.parse().map_err(drop)?,
        })
    }
}
