//! Sales: accepted orders of partners and products, whatever became of them later.

use std::collections::BTreeMap;

use crate::ids::PartnerId;
use crate::money::Currency;
use crate::order::Order;
use crate::product::ProductId;

/// What was sold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sold {
    /// Orders, or lines of orders for a product.
    pub orders: i64,
    pub vouchers: i64,
    /// Minor units.
    pub total: i64,
}

impl Sold {
    const fn add(&mut self, vouchers: i64, total: i64) {
        self.orders = self.orders.saturating_add(1);
        self.vouchers = self.vouchers.saturating_add(vouchers);
        self.total = self.total.saturating_add(total);
    }
}

/// Sales of a period by partner and by product. Sorted, as writers lock rows in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sales {
    pub partners: BTreeMap<(PartnerId, Currency), Sold>,
    pub products: BTreeMap<(ProductId, Currency), Sold>,
}

impl Sales {
    /// Adds a new order.
    pub fn add(&mut self, order: &Order) {
        let currency = order.total.currency;
        let mut vouchers = 0;
        for line in &order.lines {
            let quantity = i64::from(line.quantity);
            vouchers += quantity;
            let product = self.products.entry((line.product_id.clone(), currency));
            let total = line.unit_price.minor().saturating_mul(quantity);
            product.or_default().add(quantity, total);
        }
        let partner = self.partners.entry((order.partner_id, currency));
        partner.or_default().add(vouchers, order.total.amount.minor());
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.partners.is_empty()
    }
}
