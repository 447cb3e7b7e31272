//! Response body and filters of `/products`.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::money::{Amount, Currency, Money};
use vouchsafe_domain::product::{ExpiryPolicy, Product, ProductId, Redemption, Sku, SupplyRoute};
use vouchsafe_domain::stock::FreeVouchers;

use crate::error_body::InvalidRequest;
use crate::page::PageRequest;

pub const FILTERS: [&str; 3] = ["currency", "country", "category_id"];

/// Availability of a product or denomination (contract §3), best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(
    description = "Availability as of the last commit: `IN_STOCK`, `LOW_STOCK` (few vouchers left), \
    `ON_DEMAND` (bought from the vendor when ordered), `OUT_OF_STOCK`, `DISCONTINUED` (no longer sold)."
)]
enum Availability {
    InStock,
    LowStock,
    OnDemand,
    OutOfStock,
    Discontinued,
}

/// A product of the catalogue.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Product)]
pub struct ProductBody<'a> {
    /// Identifies the product.
    pub product_id: &'a ProductId,
    /// Name of the product.
    name: &'a str,
    /// Brand that issues the voucher.
    brand: &'a str,
    /// Category of the product.
    category_id: &'a str,
    /// Vendor that supplies the product.
    vendor: &'a str,
    /// Currency of the denominations.
    currency: Currency,
    /// Countries where vouchers can be redeemed (ISO 3166-1 alpha-2). Empty means everywhere.
    countries: &'a [String],
    /// Fixed face values, ascending.
    denominations: Vec<Money>,
    /// Range of further face values. Null if only the fixed ones are sold.
    #[schema(required)]
    denomination_range: Option<RangeBody>,
    /// How long vouchers are valid.
    expiry_policy: &'a ExpiryPolicy,
    /// Availability of the best available denomination.
    availability: Availability,
    /// Redemption instructions and terms for the voucher holder.
    redemption: &'a Redemption,
    /// When the product was last changed.
    #[serde(with = "vouchsafe_domain::timestamp")]
    updated_at: OffsetDateTime,
    /// Availability of each denomination. Only in `GET /products/{product_id}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    stock: Option<Vec<StockBody>>,
}

/// A range of face values in equal steps.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DenominationRange)]
struct RangeBody {
    /// Lowest face value.
    min: Money,
    /// Highest face value.
    max: Money,
    /// Step between face values, counted from `min`.
    step: Money,
}

/// Availability of a denomination.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DenominationStock)]
struct StockBody {
    /// Face value.
    denomination: Money,
    /// Availability of this denomination.
    availability: Availability,
}

/// Filters of a product list.
pub struct ProductFilter<'a> {
    currency: Option<Currency>,
    country: Option<&'a str>,
    category_id: Option<&'a str>,
}

impl<'a> ProductFilter<'a> {
    /// Parses the filters.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` for a value that does not parse.
    pub fn parse(page: &'a PageRequest) -> Result<Self, InvalidRequest> {
        let currency: Result<Option<Currency>, _> = page.filter("currency").map(str::parse).transpose();
        let country = page.filter("country");
        let is_country = |code: &str| code.len() == 2 && code.bytes().all(|b| b.is_ascii_uppercase());
        if !country.is_none_or(is_country) {
            let message = "expected two capital letters such as DE (ISO 3166-1)";
            return Err(InvalidRequest::field("country", message));
        }
        let category_id = page.filter("category_id");
        if category_id.is_some_and(str::is_empty) {
            return Err(InvalidRequest::field("category_id", "expected a category id"));
        }
        Ok(Self {
            currency: currency.map_err(|error| InvalidRequest::field("currency", error.to_string()))?,
            country,
            category_id,
        })
    }

    #[must_use]
    pub fn is_match(&self, product: &Product) -> bool {
        let sold_in = |country: &str| {
            product.countries.is_empty() || product.countries.iter().any(|code| code == country)
        };
        self.currency.is_none_or(|currency| product.currency == currency)
            && self.category_id.is_none_or(|id| product.category_id == id)
            && self.country.is_none_or(sold_in)
    }
}

impl<'a> ProductBody<'a> {
    /// A product of the list, without the availability of its denominations.
    #[must_use]
    pub fn of(product: &'a Product, free: &FreeVouchers) -> Self {
        let currency = product.currency;
        let best = denominations(product, free)
            .into_iter()
            .map(|d| availability(product, free_count(product, d, free)));
        Self {
            product_id: &product.product_id,
            name: &product.name,
            brand: &product.brand,
            category_id: &product.category_id,
            vendor: &product.vendor,
            currency,
            countries: &product.countries,
            denominations: product
                .denominations
                .iter()
                .map(|amount| amount.of(currency))
                .collect(),
            denomination_range: product.denomination_range.map(|range| RangeBody {
                min: range.min.of(currency),
                max: range.max.of(currency),
                step: range.step.of(currency),
            }),
            expiry_policy: &product.expiry_policy,
            availability: best.min().unwrap_or_else(|| availability(product, 0)),
            redemption: &product.redemption,
            updated_at: product.updated_at,
            stock: None,
        }
    }

    /// A product with the availability of its denominations.
    #[must_use]
    pub fn with_stock(product: &'a Product, free: &FreeVouchers) -> Self {
        let stock = denominations(product, free)
            .into_iter()
            .map(|denomination| StockBody {
                denomination: denomination.of(product.currency),
                availability: availability(product, free_count(product, denomination, free)),
            });
        Self {
            stock: Some(stock.collect()),
            ..Self::of(product, free)
        }
    }
}

/// The fixed face values, and those of the range that are in stock, ascending.
fn denominations(product: &Product, free: &FreeVouchers) -> Vec<Amount> {
    let stocked = free
        .keys()
        .filter(|sku| sku.product_id == product.product_id)
        .map(|sku| sku.denomination);
    let mut all: Vec<Amount> = product.denominations.iter().copied().chain(stocked).collect();
    all.retain(|amount| product.has_denomination(*amount));
    all.sort_unstable();
    all.dedup();
    all
}

fn free_count(product: &Product, denomination: Amount, free: &FreeVouchers) -> u32 {
    let sku = Sku {
        product_id: product.product_id.clone(),
        denomination,
    };
    free.get(&sku).copied().unwrap_or(0)
}

fn availability(product: &Product, free: u32) -> Availability {
    match (product.discontinued, free, product.route) {
        (true, _, _) => Availability::Discontinued,
        (false, 0, SupplyRoute::Vendor) => Availability::OnDemand,
        (false, 0, SupplyRoute::Stock) => Availability::OutOfStock,
        (false, free, _) if free < product.low_stock_at => Availability::LowStock,
        (false, _, _) => Availability::InStock,
    }
}
