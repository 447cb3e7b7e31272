//! Request bodies of orders.

use bytes::Bytes;
use rust_decimal::Decimal;
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize)]
struct OrderRequest<I> {
    items: I,
}

#[derive(Serialize)]
pub(crate) struct Item<'a, D> {
    pub(crate) product_id: &'a str,
    pub(crate) denomination: D,
    pub(crate) quantity: u32,
}

/// Body of an order of `quantity` vouchers of one SKU. The denomination keeps its digits.
///
/// # Errors
/// If the denomination is not an exact amount in JSON notation.
pub fn one_sku(product_id: &str, denomination: &str, quantity: u32) -> anyhow::Result<Bytes> {
    Decimal::from_str_exact(denomination)?;
    let denomination: &RawValue = serde_json::from_str(denomination)?;
    Ok(order_body(&[Item {
        product_id,
        denomination,
        quantity,
    }]))
}

/// Body of an order with these items.
pub(crate) fn order_body<D: Serialize>(items: &[Item<'_, D>]) -> Bytes {
    let Ok(body) = serde_json::to_vec(&OrderRequest { items }) else {
        unreachable!("strings and numbers serialize to JSON")
    };
    body.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denomination_keeps_its_digits() {
        let body = one_sku("sbx-\"x", "25.50", 2).unwrap();
        assert_eq!(
            body,
            r#"{"items":[{"product_id":"sbx-\"x","denomination":25.50,"quantity":2}]}"#
        );
        assert!(one_sku("p", "2e1", 1).is_err());
        assert!(one_sku("p", "025", 1).is_err(), "JSON has no leading zeros");
    }
}
