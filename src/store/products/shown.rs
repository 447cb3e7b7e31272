//! A product as operators and the trail see it: every field, amounts as decimals of its currency.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_actors::domain::money::{Currency, Money};
use vouchsafe_actors::domain::product::{Approval, ExpiryPolicy, Product, ProductId, Redemption, Route};

/// All there is to a product.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Product)]
pub struct ShownProduct<'a> {
    /// Its id.
    product_id: &'a ProductId,
    /// What it is called.
    name: &'a str,
    /// Whose voucher it is; codes are unique within a brand.
    brand: &'a str,
    /// The category it is in.
    category_id: &'a str,
    /// The vendor it is bought from.
    vendor: &'a str,
    /// What its denominations are counted in.
    currency: Currency,
    /// ISO 3166 codes of where it can be redeemed; empty is everywhere.
    countries: &'a [String],
    /// Listed face values, ascending.
    denominations: Vec<Money>,
    /// Face values beside the listed ones.
    #[schema(required)]
    denomination_range: Option<ShownRange>,
    /// How long a voucher is good for.
    expiry_policy: &'a ExpiryPolicy,
    /// What the holder of a voucher is told.
    redemption: &'a Redemption,
    /// Where vouchers come from when the shelf is short.
    route: Route,
    /// When an order of it waits for an operator.
    approval: Approval,
    /// Whether the vendor takes vouchers back.
    returnable: bool,
    /// Fewest days that a voucher must have left to be allocated.
    min_validity_days: u16,
    /// Below how many vouchers its availability reads `LOW_STOCK`.
    low_stock_at: u32,
    /// Whether it is no longer sold.
    discontinued: bool,
    /// When an operator last changed it.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    updated_at: OffsetDateTime,
}

/// Face values between two bounds, in equal steps.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DenominationRange)]
struct ShownRange {
    /// The least.
    min: Money,
    /// The most.
    max: Money,
    /// From one to the next, counted from `min`.
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
