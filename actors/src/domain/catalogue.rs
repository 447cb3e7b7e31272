//! From what a partner asks for to an order with prices: which products, at which denominations, in one currency.
//!
//! Rule: the price is the service's own; nothing of it is taken from the request.

use std::collections::HashMap;
use std::sync::Arc;

use super::money::{Amount, AmountText, Currency, InvalidMoney};
use super::order::{Fulfilment, PricedLine, PricedOrder};
use super::product::{Product, ProductId, Sku};
use super::scope::Scope;

/// Most lines of an order (contract §3).
pub const MAX_LINES: usize = 100;

/// Most vouchers of an order (contract §3); also what bounds one record of the journal.
pub const MAX_VOUCHERS: u32 = 1_000;

/// A line as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedLine {
    /// Which product, as it was spelled.
    pub product_id: String,
    /// At which face value; read once the product's currency is known.
    pub denomination: AmountText,
    pub quantity: u32,
}

/// An order as it was asked for: well-formed, and nothing known about it yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedOrder {
    /// The lines; 1 to [`MAX_LINES`], together at most [`MAX_VOUCHERS`] vouchers.
    pub lines: Vec<RequestedLine>,
    /// The currency that the partner expects, if it said so.
    pub currency: Option<Currency>,
    /// What it may be fulfilled from.
    pub fulfilment: Fulfilment,
    /// The partner's own reference.
    pub reference: Option<String>,
    /// The partner's own metadata: the text of a JSON object.
    pub metadata: Option<Arc<str>>,
}

/// Why an order has no price.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unpriced {
    /// The catalogue has no such product for this partner.
    #[error("there is no product {0}; GET /products lists what can be ordered")]
    ProductNotFound(String),
    /// The product is no longer sold.
    #[error("product {0} is discontinued; order another one")]
    Discontinued(ProductId),
    /// The product is not sold at this face value.
    #[error("product {product_id} is not sold at this denomination; GET /products/{product_id} lists them")]
    Denomination {
        product_id: ProductId,
        /// Which line, from 0.
        line: usize,
    },
    /// The face value is no amount of the product's currency.
    #[error("items[{line}].denomination: {error}")]
    Amount {
        /// Which line, from 0.
        line: usize,
        /// What is wrong with it.
        error: InvalidMoney,
    },
    /// The lines, or the lines and the request, name more than one currency.
    #[error(
        "all items of an order share one currency: {product_id} is sold in {found}, the order is in {expected}"
    )]
    Currency {
        /// The product that differs.
        product_id: ProductId,
        found: Currency,
        expected: Currency,
    },
    /// The total cannot be counted.
    #[error("the order's total is too large")]
    TooLarge,
}

/// The products of the moment, as one order sees them. A snapshot: a change makes a new one.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    products: HashMap<ProductId, Arc<Product>>,
}

impl Catalogue {
    /// A catalogue of these products.
    #[must_use]
    pub fn new(products: impl IntoIterator<Item = Product>) -> Self {
        Self {
            products: products
                .into_iter()
                .map(|p| (p.product_id.clone(), Arc::new(p)))
                .collect(),
        }
    }

    /// The product of this id.
    #[must_use]
    pub fn get(&self, product_id: &ProductId) -> Option<&Arc<Product>> {
        self.products.get(product_id)
    }

    /// This catalogue with `product` new or replaced.
    #[must_use]
    pub fn with(&self, product: Product) -> Self {
        let mut products = self.products.clone();
        products.insert(product.product_id.clone(), Arc::new(product));
        Self { products }
    }
}

/// The catalogue as one partner sees it: what lies outside of its scope is not there, to be seen or to be ordered.
#[derive(Debug, Clone)]
pub struct Assortment {
    catalogue: Arc<Catalogue>,
    scope: Option<Arc<Scope>>,
}

impl Assortment {
    /// Of this catalogue what lies within `scope`; all of it where there is none.
    #[must_use]
    pub const fn new(catalogue: Arc<Catalogue>, scope: Option<Arc<Scope>>) -> Self {
        Self { catalogue, scope }
    }

    /// The product of this id.
    #[must_use]
    pub fn get(&self, product_id: &ProductId) -> Option<&Product> {
        let product = self.catalogue.get(product_id)?;
        self.has(product).then_some(product)
    }

    /// All products, in no order.
    pub fn products(&self) -> impl Iterator<Item = &Product> {
        let all = self.catalogue.products.values().map(AsRef::as_ref);
        all.filter(|product| self.has(product))
    }

    fn has(&self, product: &Product) -> bool {
        self.scope.as_ref().is_none_or(|scope| scope.admits(product))
    }

    /// Gives every line its price.
    ///
    /// # Errors
    /// [`Unpriced`], for the first line that has none.
    pub fn price(&self, request: &RequestedOrder) -> Result<PricedOrder, Unpriced> {
        let mut currency = request.currency;
        let mut total = Amount::ZERO;
        let mut lines = Vec::with_capacity(request.lines.len());
        for (index, line) in request.lines.iter().enumerate() {
            let product = self.sold(&line.product_id)?;
            let expected = *currency.get_or_insert(product.currency);
            same_currency(product, expected)?;
            let priced = price_line(product, line, index)?;
            let cost = priced
                .unit_price
                .checked_mul(priced.quantity)
                .ok_or(Unpriced::TooLarge)?;
            total = total.checked_add(cost).ok_or(Unpriced::TooLarge)?;
            lines.push(priced);
        }
        let currency = currency.ok_or(Unpriced::TooLarge)?;
        Ok(PricedOrder {
            lines,
            total: total.of(currency),
            fulfilment: request.fulfilment,
            reference: request.reference.clone(),
            metadata: request.metadata.clone(),
        })
    }

    fn sold(&self, product_id: &str) -> Result<&Product, Unpriced> {
        let known: Option<ProductId> = product_id.parse().ok();
        let product = known.and_then(|id| self.get(&id));
        let product = product.ok_or_else(|| Unpriced::ProductNotFound(product_id.to_owned()))?;
        if product.discontinued {
            return Err(Unpriced::Discontinued(product.product_id.clone()));
        }
        Ok(product)
    }
}

fn same_currency(product: &Product, expected: Currency) -> Result<(), Unpriced> {
    if product.currency == expected {
        return Ok(());
    }
    Err(Unpriced::Currency {
        product_id: product.product_id.clone(),
        found: product.currency,
        expected,
    })
}

fn price_line(product: &Product, line: &RequestedLine, index: usize) -> Result<PricedLine, Unpriced> {
    let denomination = line.denomination.parse(product.currency);
    let denomination = denomination.map_err(|error| Unpriced::Amount { line: index, error })?;
    if !product.offers(denomination) {
        return Err(Unpriced::Denomination {
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
