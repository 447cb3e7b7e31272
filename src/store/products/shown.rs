//! A product as operators and the trail see it: every field, amounts as decimals of its currency.

use serde::Serialize;
use time::OffsetDateTime;
use vouchsafe_actors::domain::money::{Currency, Money};
use vouchsafe_actors::domain::product::{Approval, ExpiryPolicy, Product, ProductId, Redemption, Route};

/// All there is to a product.
#[derive(Debug, Serialize)]
pub struct ShownProduct<'a> {
    product_id: &'a ProductId,
    name: &'a str,
    brand: &'a str,
    category_id: &'a str,
    vendor: &'a str,
    currency: Currency,
    countries: &'a [String],
    denominations: Vec<Money>,
    denomination_range: Option<ShownRange>,
    expiry_policy: &'a ExpiryPolicy,
    redemption: &'a Redemption,
    route: Route,
    approval: Approval,
    returnable: bool,
    min_validity_days: u16,
    low_stock_at: u32,
    discontinued: bool,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
}

#[derive(Debug, Serialize)]
struct ShownRange {
    min: Money,
    max: Money,
    step: Money,
}

impl<'a> ShownProduct<'a> {
    /// Which product.
    #[must_use]
    pub const fn product_id(&self) -> &'a ProductId {
        self.product_id
    }

    /// The view of a product.
    #[must_use]
    pub fn of(product: &'a Product) -> Self {
        let currency = product.currency;
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
            denomination_range: product.denomination_range.map(|range| ShownRange {
                min: range.min.of(currency),
                max: range.max.of(currency),
                step: range.step.of(currency),
            }),
            expiry_policy: &product.expiry_policy,
            redemption: &product.redemption,
            route: product.route,
            approval: product.approval,
            returnable: product.returnable,
            min_validity_days: product.min_validity_days,
            low_stock_at: product.low_stock_at,
            discontinued: product.discontinued,
            updated_at: product.updated_at,
        }
    }
}
