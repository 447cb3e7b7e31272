//! Catalogue and order pricing: validates the requested lines and prices them in one currency.
//!
//! Prices come from the catalogue alone; the request cannot influence them.

pub mod current;

use std::collections::HashMap;
use std::sync::Arc;

use super::money::{Amount, AmountText, Currency, InvalidMoney};
use super::order::{Fulfilment, PricedLine, PricedOrder};
use super::product::{CodeCase, CodeScope, Product, ProductId, Sku};
use super::scope::Scope;

/// Maximum number of lines in an order (contract §3).
pub const MAX_LINES: usize = 100;

/// Maximum number of vouchers in an order (contract §3); also bounds the size of one journal record.
pub const MAX_VOUCHERS: u32 = 1_000;

/// A requested order line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedLine {
    /// The product id as the partner sent it; not validated yet.
    pub product_id: String,
    /// The face value; parsed once the product's currency is known.
    pub denomination: AmountText,
    pub quantity: u32,
}

/// A well-formed order request, not yet checked against the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedOrder {
    /// 1 to [`MAX_LINES`] lines with at most [`MAX_VOUCHERS`] vouchers in total.
    pub lines: Vec<RequestedLine>,
    /// The currency the partner expects, if given.
    pub currency: Option<Currency>,
    pub fulfilment: Fulfilment,
    pub reference: Option<String>,
    /// The partner's metadata: the text of a JSON object.
    pub metadata: Option<Arc<str>>,
}

/// Why an order cannot be priced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PricingError {
    #[error("product {0} not found; GET /products lists the products you can order")]
    ProductNotFound(String),
    #[error("product {0} is discontinued; order another one")]
    Discontinued(ProductId),
    #[error(
        "product {product_id} is not sold at this denomination; GET /products/{product_id} lists its denominations"
    )]
    DenominationNotOffered {
        product_id: ProductId,
        /// Line index, from 0.
        line: usize,
    },
    #[error("items[{line}].denomination: {error}")]
    InvalidAmount {
        /// Line index, from 0.
        line: usize,
        error: InvalidMoney,
    },
    #[error(
        "all items of an order share one currency: {product_id} is sold in {found}, the order is in {expected}"
    )]
    CurrencyMismatch {
        product_id: ProductId,
        found: Currency,
        expected: Currency,
    },
    #[error("the order's total is too large; split the order")]
    TotalTooLarge,
}

/// Why an order cannot be priced, and which lines are the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{first}")]
pub struct PricingFailure {
    /// The error of the first line that cannot be priced, or of the total.
    pub first: PricingError,
    /// Every line that cannot be priced, by its index from 0.
    pub lines: Vec<(usize, PricingError)>,
}

/// An immutable snapshot of all products.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    products: HashMap<ProductId, Arc<Product>>,
}

impl Catalogue {
    #[must_use]
    pub fn new(products: impl IntoIterator<Item = Product>) -> Self {
        Self {
            products: products
                .into_iter()
                .map(|p| (p.product_id.clone(), Arc::new(p)))
                .collect(),
        }
    }

    #[must_use]
    pub fn get(&self, product_id: &ProductId) -> Option<&Arc<Product>> {
        self.products.get(product_id)
    }

    /// Whether the case of a product's codes counts by default: as it is, or as with other products of the
    /// brand.
    #[must_use]
    pub fn code_case_of(&self, product_id: &ProductId, brand: &str) -> CodeCase {
        let key = |product: &Product| product.code_scope().brand_key();
        let brand = CodeScope::exact(brand).brand_key();
        let known = self.get(product_id).filter(|product| key(product) == brand);
        let known = known.or_else(|| self.products.values().find(|product| key(product) == brand));
        known.map_or(CodeCase::Exact, |product| product.code_case)
    }

    /// Returns a copy of the catalogue with `product` added or replaced.
    #[must_use]
    pub fn with_product(&self, product: Product) -> Self {
        let mut products = self.products.clone();
        products.insert(product.product_id.clone(), Arc::new(product));
        Self { products }
    }
}

/// The catalogue restricted to a partner's scope: products outside of it can neither be listed nor ordered.
#[derive(Debug, Clone)]
pub struct Assortment {
    catalogue: Arc<Catalogue>,
    scope: Option<Arc<Scope>>,
}

impl Assortment {
    /// Restricts the catalogue to `scope`; `None` admits every product.
    #[must_use]
    pub const fn new(catalogue: Arc<Catalogue>, scope: Option<Arc<Scope>>) -> Self {
        Self { catalogue, scope }
    }

    #[must_use]
    pub fn get(&self, product_id: &ProductId) -> Option<&Product> {
        let product = self.catalogue.get(product_id)?;
        self.contains(product).then_some(product)
    }

    /// All products, in no particular order.
    pub fn products(&self) -> impl Iterator<Item = &Product> {
        let all = self.catalogue.products.values().map(AsRef::as_ref);
        all.filter(|product| self.contains(product))
    }

    fn contains(&self, product: &Product) -> bool {
        self.scope.as_ref().is_none_or(|scope| scope.contains(product))
    }

    /// Prices every line of the request.
    ///
    /// # Errors
    /// [`PricingFailure`] if a line cannot be priced, or the total is too large.
    pub fn price(&self, request: &RequestedOrder) -> Result<PricedOrder, PricingFailure> {
        self.price_lines(request).map_err(|first| PricingFailure {
            first,
            lines: self.refused_lines(request),
        })
    }

    fn price_lines(&self, request: &RequestedOrder) -> Result<PricedOrder, PricingError> {
        let mut currency = request.currency;
        let mut total = Amount::ZERO;
        let mut lines = Vec::with_capacity(request.lines.len());
        for (index, line) in request.lines.iter().enumerate() {
            let priced = self.price_line(index, line, &mut currency)?;
            let cost = priced
                .unit_price
                .checked_mul(priced.quantity)
                .ok_or(PricingError::TotalTooLarge)?;
            total = total.checked_add(cost).ok_or(PricingError::TotalTooLarge)?;
            lines.push(priced);
        }
        let currency = currency.ok_or(PricingError::TotalTooLarge)?;
        Ok(PricedOrder {
            lines,
            total: total.of(currency),
            fulfilment: request.fulfilment,
            reference: request.reference.clone(),
            metadata: request.metadata.clone(),
        })
    }

    /// Every line that cannot be priced. Only for a request of which one cannot.
    fn refused_lines(&self, request: &RequestedOrder) -> Vec<(usize, PricingError)> {
        let mut currency = request.currency;
        let lines = request.lines.iter().enumerate();
        let refused = lines
            .filter_map(|(index, line)| Some((index, self.price_line(index, line, &mut currency).err()?)));
        refused.collect()
    }

    /// Prices a line. The first one sets the currency if the request names none.
    fn price_line(
        &self,
        index: usize,
        line: &RequestedLine,
        currency: &mut Option<Currency>,
    ) -> Result<PricedLine, PricingError> {
        let product = self.find_for_sale(&line.product_id)?;
        check_currency(product, *currency.get_or_insert(product.currency))?;
        price_line(product, line, index)
    }

    fn find_for_sale(&self, product_id: &str) -> Result<&Product, PricingError> {
        let known: Option<ProductId> = product_id.parse().ok();
        let product = known.and_then(|id| self.get(&id));
        let product = product.ok_or_else(|| PricingError::ProductNotFound(product_id.to_owned()))?;
        if product.discontinued {
            return Err(PricingError::Discontinued(product.product_id.clone()));
        }
        Ok(product)
    }
}

fn check_currency(product: &Product, expected: Currency) -> Result<(), PricingError> {
    if product.currency == expected {
        return Ok(());
    }
    Err(PricingError::CurrencyMismatch {
        product_id: product.product_id.clone(),
        found: product.currency,
        expected,
    })
}

fn price_line(product: &Product, line: &RequestedLine, index: usize) -> Result<PricedLine, PricingError> {
    let denomination = line.denomination.parse(product.currency);
    let denomination = denomination.map_err(|error| PricingError::InvalidAmount { line: index, error })?;
    if !product.has_denomination(denomination) {
        return Err(PricingError::DenominationNotOffered {
            product_id: product.product_id.clone(),
            line: index,
        });
    }
    Ok(PricedLine {
        sku: Sku {
            product_id: product.product_id.clone(),
            denomination,
        },
        quantity: line.quantity,
        unit_price: denomination,
        route: product.route,
        min_validity_days: product.min_validity_days,
        approval: product.approval,
    })
}

#[cfg(test)]
mod tests;
