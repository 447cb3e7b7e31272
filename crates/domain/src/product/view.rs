//! Product view for operators and the audit log: all fields, amounts as decimals of the currency.

use serde::Serialize;
use time::OffsetDateTime;

use super::{
    ApprovalPolicy, CodeCase, CodeIdentity, ExpiryPolicy, Product, ProductId, Redemption, SupplyRoute,
};
use crate::money::{Currency, Money};

/// A product with all of its fields.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "utoipa", schema(as = Product))]
pub struct ProductView<'a> {
    /// Id of the product.
    product_id: &'a ProductId,
    /// Display name.
    name: &'a str,
    /// Brand. Codes are unique within a brand.
    brand: &'a str,
    /// Id of the category.
    category_id: &'a str,
    /// Id of the vendor.
    vendor: &'a str,
    /// Currency of the denominations.
    currency: Currency,
    /// ISO 3166 codes of the countries of redemption; empty means all.
    #[cfg_attr(feature = "utoipa", schema(value_type = Vec<crate::text_schema::Country>))]
    countries: &'a [String],
    /// Listed face values, ascending.
    denominations: Vec<Money>,
    /// Range of further face values.
    #[cfg_attr(feature = "utoipa", schema(required))]
    denomination_range: Option<DenominationRangeView>,
    /// Validity of vouchers.
    expiry_policy: &'a ExpiryPolicy,
    /// Redemption instructions for the holder of a voucher.
    redemption: &'a Redemption,
    /// Source of vouchers when stock is short.
    route: SupplyRoute,
    /// When orders of the product need the approval of an operator.
    approval: ApprovalPolicy,
    /// Whether vouchers can be returned.
    returnable: bool,
    /// What identifies a voucher among those of the brand.
    code_identity: CodeIdentity,
    /// Whether the case of codes counts.
    code_case: CodeCase,
    /// Minimum remaining validity of an allocated voucher. Days.
    min_validity_days: u16,
    /// Number of free vouchers below which availability is `LOW_STOCK`.
    low_stock_at: u32,
    /// Whether the product is no longer sold.
    discontinued: bool,
    /// Time of the last change.
    #[serde(with = "crate::timestamp")]
    updated_at: OffsetDateTime,
}

/// A range of face values in equal steps.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "utoipa", schema(as = DenominationRange))]
pub struct DenominationRangeView {
    /// Lowest face value.
    min: Money,
    /// Highest face value.
    max: Money,
    /// Step between face values, counted from `min`.
    step: Money,
}

impl DenominationRangeView {
    /// The range of face values of a product, if it has one.
    #[must_use]
    pub fn of(product: &Product) -> Option<Self> {
        let [min, max, step] = product.denomination_range?.of(product.currency);
        Some(Self { min, max, step })
    }
}

impl<'a> ProductView<'a> {
    #[must_use]
    pub const fn product_id(&self) -> &'a ProductId {
        self.product_id
    }

    #[must_use]
    pub fn of(product: &'a Product) -> Self {
        Self {
            product_id: &product.product_id,
            name: &product.name,
            brand: &product.brand,
            category_id: &product.category_id,
            vendor: &product.vendor,
            currency: product.currency,
            countries: &product.countries,
            denominations: product.listed_denominations(),
            denomination_range: DenominationRangeView::of(product),
            expiry_policy: &product.expiry_policy,
            redemption: &product.redemption,
            route: product.route,
            approval: product.approval,
            returnable: product.returnable,
            code_identity: product.code_identity,
            code_case: product.code_case,
            min_validity_days: product.min_validity_days,
            low_stock_at: product.low_stock_at,
            discontinued: product.discontinued,
            updated_at: product.updated_at,
        }
    }
}
