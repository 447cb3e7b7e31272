//! What does an order ask for? The body of an order; how often and by whom is the run's matter.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::money::Amount;

/// The orders of a run: all for one product at one denomination.
#[derive(Clone, Debug)]
pub struct Workload {
    body: Bytes,
}

/// Why no order can be made of the given parts.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The denomination is not an exact amount.
    #[error("the denomination is not an amount")]
    Denomination(#[from] crate::money::AmountError),
    /// The parts do not form JSON.
    #[error("the order cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

#[derive(Serialize)]
struct OrderRequest<I> {
    items: I,
}

/// One line of an order.
#[derive(Serialize)]
pub(crate) struct Item<'a, D> {
    product_id: &'a str,
    denomination: D,
    quantity: u32,
}

impl<'a, D> Item<'a, D> {
    /// So many vouchers of a SKU.
    pub(crate) fn new(product_id: &'a str, denomination: D, quantity: u32) -> Self {
        Self {
            product_id,
            denomination,
            quantity,
        }
    }
}

impl Workload {
    /// Every order asks for `quantity` vouchers of one SKU. The denomination goes to the wire with the digits given.
    ///
    /// # Errors
    /// When the denomination is not an exact amount as JSON writes it.
    pub fn one_sku(product_id: &str, denomination: &str, quantity: u32) -> Result<Self, WorkloadError> {
        denomination.parse::<Amount>()?;
        let denomination: &RawValue = serde_json::from_str(denomination)?;
        let order = OrderRequest {
            items: [Item::new(product_id, denomination, quantity)],
        };
        Ok(Self {
            body: serde_json::to_vec(&order)?.into(),
        })
    }

    /// The body of an order of these items, whose denominations are whole.
    pub(crate) fn body<'a>(items: impl Iterator<Item = Item<'a, u32>>) -> Bytes {
        let items: Vec<_> = items.collect();
        let Ok(body) = serde_json::to_vec(&OrderRequest { items }) else {
            unreachable!("text and whole numbers are JSON")
        };
        body.into()
    }

    /// The body of the next order; costs no copy.
    #[must_use]
    pub fn next_body(&self) -> Bytes {
        self.body.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_of_the_denomination_are_kept() {
        let body = Workload::one_sku("sbx-\"x", "25.50", 2).unwrap().next_body();
        assert_eq!(
            body,
            r#"{"items":[{"product_id":"sbx-\"x","denomination":25.50,"quantity":2}]}"#
        );
        assert!(Workload::one_sku("p", "2e1", 1).is_err());
        assert!(
            Workload::one_sku("p", "025", 1).is_err(),
            "JSON knows no leading zero"
        );
    }

    #[test]
    fn an_order_has_several_lines() {
        let items = [Item::new("a", 25, 2), Item::new("b", 10, 1)];
        assert_eq!(
            Workload::body(items.into_iter()),
            r#"{"items":[{"product_id":"a","denomination":25,"quantity":2},{"product_id":"b","denomination":10,"quantity":1}]}"#
        );
    }
}
