//! Request bodies of orders.

use bytes::Bytes;
use rust_decimal::Decimal;
use serde::Serialize;
use serde_json::value::RawValue;

/// A workload with one fixed order body.
#[derive(Clone, Debug)]
pub struct Workload {
    body: Bytes,
}

#[derive(Serialize)]
struct OrderRequest<I> {
    items: I,
}

#[derive(Serialize)]
pub(crate) struct Item<'a, D> {
    product_id: &'a str,
    denomination: D,
    quantity: u32,
}

impl<'a, D> Item<'a, D> {
    pub(crate) fn new(product_id: &'a str, denomination: D, quantity: u32) -> Self {
        Self {
            product_id,
            denomination,
            quantity,
        }
    }
}

impl Workload {
    /// Each order contains `quantity` vouchers of one SKU. The denomination keeps its digits.
    ///
    /// # Errors
    /// If the denomination is not an exact amount in JSON notation.
    pub fn one_sku(product_id: &str, denomination: &str, quantity: u32) -> anyhow::Result<Self> {
        Decimal::from_str_exact(denomination)?;
        let denomination: &RawValue = serde_json::from_str(denomination)?;
        let order = OrderRequest {
            items: [Item::new(product_id, denomination, quantity)],
        };
        Ok(Self {
            body: serde_json::to_vec(&order)?.into(),
        })
    }

    /// Body of an order with these items; denominations are whole numbers.
    pub(crate) fn body<'a>(items: impl Iterator<Item = Item<'a, u32>>) -> Bytes {
        let items: Vec<_> = items.collect();
        let Ok(body) = serde_json::to_vec(&OrderRequest { items }) else {
            unreachable!("strings and integers serialize to JSON")
        };
        body.into()
    }

    /// Body of the next order, without a copy.
    pub(crate) fn next_body(&self) -> Bytes {
        self.body.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denomination_keeps_its_digits() {
        let body = Workload::one_sku("sbx-\"x", "25.50", 2).unwrap().next_body();
        assert_eq!(
            body,
            r#"{"items":[{"product_id":"sbx-\"x","denomination":25.50,"quantity":2}]}"#
        );
        assert!(Workload::one_sku("p", "2e1", 1).is_err());
        assert!(
            Workload::one_sku("p", "025", 1).is_err(),
            "JSON has no leading zeros"
        );
    }

    #[test]
    fn body_contains_all_items() {
        let items = [Item::new("a", 25, 2), Item::new("b", 10, 1)];
        assert_eq!(
            Workload::body(items.into_iter()),
            r#"{"items":[{"product_id":"a","denomination":25,"quantity":2},{"product_id":"b","denomination":10,"quantity":1}]}"#
        );
    }
}
