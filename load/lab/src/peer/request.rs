//! Parsing of order requests for the only product of the peer, and their price.

use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::refusal::Refusal;

/// Denomination of the product, in minor units of [`CURRENCY`].
const DENOMINATION: i64 = 2_500;
pub(super) const CURRENCY: &str = "USD";
/// Maximum vouchers per order.
const MAX_VOUCHERS: i32 = 1_000;
/// Decimals of the currency.
const DECIMALS: u32 = 2;

/// A requested order of the product, with its price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PricedOrder {
    pub(super) quantity: i32,
    /// In minor units.
    pub(super) denomination: i64,
    pub(super) total: i64,
}

impl PricedOrder {
    pub(super) fn of(quantity: i32) -> Self {
        Self {
            quantity,
            denomination: DENOMINATION,
            total: DENOMINATION * i64::from(quantity),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OrderRequest<'a> {
    #[serde(borrow)]
    items: Vec<Item<'a>>,
    currency: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Item<'a> {
    product_id: String,
    #[serde(borrow)]
    denomination: &'a RawValue,
    quantity: i32,
}

/// Parses and prices an order of this product.
pub(super) fn parse_order(body: &[u8], product_id: &str) -> Result<PricedOrder, Refusal> {
    let request: OrderRequest<'_> = serde_json::from_slice(body).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => Refusal::ValidationFailed(error.to_string()),
        _ => Refusal::MalformedRequest,
    })?;
    let [item] = &request.items[..] else {
        return Err(Refusal::ValidationFailed("items: exactly 1".to_owned()));
    };
    if item.product_id != product_id {
        return Err(Refusal::ProductNotFound(item.product_id.clone()));
    }
    // A number, or a string of digits.
    let denomination = Decimal::from_str_exact(item.denomination.get().trim_matches('"'));
    if denomination != Ok(Decimal::new(DENOMINATION, DECIMALS)) {
        return Err(Refusal::DenominationNotAllowed(item.product_id.clone()));
    }
    if request.currency.is_some_and(|currency| currency != CURRENCY) {
        return Err(Refusal::CurrencyMismatch);
    }
    if !(1..=MAX_VOUCHERS).contains(&item.quantity) {
        return Err(Refusal::ValidationFailed("quantity: 1 to 1,000".to_owned()));
    }
    Ok(PricedOrder::of(item.quantity))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_parsed_and_priced() {
        let invalid = Some("VALIDATION_FAILED");
        for (items, code) in [
            (r#"{"product_id":"a","denomination":25,"quantity":2}"#, None),
            (r#"{"product_id":"a","denomination":"25.00","quantity":2}"#, None),
            (
                r#"{"product_id":"z","denomination":25,"quantity":2}"#,
                Some("PRODUCT_NOT_FOUND"),
            ),
            (
                r#"{"product_id":"a","denomination":26,"quantity":2}"#,
                Some("DENOMINATION_NOT_ALLOWED"),
            ),
            (
                r#"{"product_id":"a","denomination":25.001,"quantity":2}"#,
                Some("DENOMINATION_NOT_ALLOWED"),
            ),
            (r#"{"product_id":"a","denomination":25,"quantity":0}"#, invalid),
            (r#"{"product_id":"a","denomination":25,"quantity":1001}"#, invalid),
            (
                r#"{"product_id":"a","denomination":25,"quantity":2,"x":1}"#,
                invalid,
            ),
            ("", invalid),
            ("{", Some("MALFORMED_REQUEST")),
        ] {
            let parsed = parse_order(format!(r#"{{"items":[{items}]}}"#).as_bytes(), "a");
            let found = parsed.map_err(|refusal| vouchsafe_api_client::wire::error_code(&refusal.body()));
            match code {
                None => assert_eq!(found, Ok(PricedOrder::of(2)), "{items}"),
                Some(code) => assert_eq!(found, Err(Some(code.to_owned())), "{items}"),
            }
        }
        let euros = br#"{"items":[{"product_id":"a","denomination":25,"quantity":1}],"currency":"EUR"}"#;
        assert_eq!(parse_order(euros, "a"), Err(Refusal::CurrencyMismatch));
    }
}
