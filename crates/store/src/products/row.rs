//! Row of the `products` table.

use sqlx::types::Json;
use time::OffsetDateTime;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::{
    ApprovalPolicy, DenominationRange, ExpiryPolicy, Product, Redemption, SupplyRoute,
};

#[derive(sqlx::FromRow)]
pub(super) struct ProductRow {
    product_id: String,
    name: String,
    brand: String,
    category_id: String,
    vendor: String,
    currency: String,
    countries: Vec<String>,
    denominations: Vec<i64>,
    range_min: Option<i64>,
    range_max: Option<i64>,
    range_step: Option<i64>,
    expiry_policy: Json<ExpiryPolicy>,
    redemption: Json<Redemption>,
    route: String,
    approval: String,
    returnable: bool,
    min_validity_days: i32,
    low_stock_at: i32,
    discontinued: bool,
    updated_at: OffsetDateTime,
}

#[derive(Debug, thiserror::Error)]
#[error("product {product_id} has an invalid {column}")]
struct InvalidRow {
    product_id: String,
    column: &'static str,
}

impl TryFrom<ProductRow> for Product {
    type Error = sqlx::Error;

    fn try_from(row: ProductRow) -> Result<Self, sqlx::Error> {
        let invalid = |column| {
            let product_id = row.product_id.clone();
            sqlx::Error::Decode(Box::new(InvalidRow { product_id, column }))
        };
        Ok(Self {
            product_id: row.product_id.parse().map_err(|_| invalid("product_id"))?,
            currency: row.currency.parse().map_err(|_| invalid("currency"))?,
            route: parse_route(&row.route).ok_or_else(|| invalid("route"))?,
            approval: parse_approval(&row.approval).ok_or_else(|| invalid("approval"))?,
            min_validity_days: u16::try_from(row.min_validity_days)
                .map_err(|_| invalid("min_validity_days"))?,
            denomination_range: row.range(),
            low_stock_at: row.low_stock_at.cast_unsigned(),
            denominations: row.denominations.into_iter().map(Amount::from_minor).collect(),
            name: row.name,
            brand: row.brand,
            category_id: row.category_id,
            vendor: row.vendor,
            countries: row.countries,
            expiry_policy: row.expiry_policy.0,
            redemption: row.redemption.0,
            returnable: row.returnable,
            discontinued: row.discontinued,
            updated_at: row.updated_at,
        })
    }
}

impl ProductRow {
    fn range(&self) -> Option<DenominationRange> {
        Some(DenominationRange {
            min: Amount::from_minor(self.range_min?),
            max: Amount::from_minor(self.range_max?),
            step: Amount::from_minor(self.range_step?),
        })
    }
}

pub(super) const fn route_label(route: SupplyRoute) -> &'static str {
    match route {
        SupplyRoute::Stock => "stock",
        SupplyRoute::Vendor => "vendor",
    }
}

fn parse_route(label: &str) -> Option<SupplyRoute> {
    [SupplyRoute::Stock, SupplyRoute::Vendor]
        .into_iter()
        .find(|route| route_label(*route) == label)
}

pub(super) const fn approval_label(approval: ApprovalPolicy) -> &'static str {
    match approval {
        ApprovalPolicy::Rule => "rule",
        ApprovalPolicy::Always => "always",
    }
}

fn parse_approval(label: &str) -> Option<ApprovalPolicy> {
    [ApprovalPolicy::Rule, ApprovalPolicy::Always]
        .into_iter()
        .find(|approval| approval_label(*approval) == label)
}
