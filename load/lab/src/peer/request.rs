//! Parsing of order requests into priced lines of known SKUs.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::refusal::Refusal;

/// Maximum items per order.
const MAX_ITEMS: usize = 100;
/// Maximum vouchers per order.
const MAX_VOUCHERS: i32 = 1_000;
/// Decimals of all currencies that the peer supports.
const DECIMALS: usize = 2;

/// A SKU: product id and denomination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PeerSku {
    /// Primary key in the database.
    pub(super) sku_id: i32,
    pub(super) currency: String,
}

/// SKUs by product and denomination, read once at the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Catalogue(HashMap<String, HashMap<i64, PeerSku>>);

impl Catalogue {
    /// Adds a SKU; the denomination is in minor units.
    pub(super) fn insert(&mut self, product_id: String, denomination: i64, sku: PeerSku) {
        self.0.entry(product_id).or_default().insert(denomination, sku);
    }

    fn find(&self, product_id: &str, denomination: i64) -> Result<&PeerSku, Refusal> {
        let denominations = self
            .0
            .get(product_id)
            .ok_or_else(|| Refusal::ProductNotFound(product_id.to_owned()))?;
        denominations
            .get(&denomination)
            .ok_or_else(|| Refusal::DenominationNotAllowed(product_id.to_owned()))
    }
}

/// An order line, also in the stored JSON format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) sku_id: i32,
    pub(super) product_id: String,
    pub(super) denomination: i64,
    pub(super) quantity: i32,
}

/// A requested order with prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PricedOrder {
    /// Sorted by SKU: a consistent lock order prevents deadlocks.
    pub(super) lines: Vec<Line>,
    pub(super) currency: String,
    pub(super) total: i64,
}

impl PricedOrder {
    /// Number of requested vouchers.
    pub(super) fn vouchers(&self) -> usize {
        let each = |line: &Line| usize::try_from(line.quantity).unwrap_or_default();
        self.lines.iter().map(each).sum()
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

/// Parses and prices an order.
pub(super) fn parse_order(body: &[u8], catalogue: &Catalogue) -> Result<PricedOrder, Refusal> {
    let request: OrderRequest<'_> = serde_json::from_slice(body).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => Refusal::ValidationFailed(error.to_string()),
        _ => Refusal::MalformedRequest,
    })?;
    check_sizes(&request)?;
    let mut lines = Vec::with_capacity(request.items.len());
    let mut currency = request.currency;
    let mut total = 0_i64;
    for item in request.items {
        let denomination = parse_minor_units(item.denomination.get())?;
        let sku = catalogue.find(&item.product_id, denomination)?;
        if *currency.get_or_insert_with(|| sku.currency.clone()) != sku.currency {
            return Err(Refusal::CurrencyMismatch);
        }
        total = denomination
            .checked_mul(i64::from(item.quantity))
            .and_then(|price| total.checked_add(price))
            .ok_or_else(|| Refusal::ValidationFailed("the total is too large".to_owned()))?;
        lines.push(Line {
            sku_id: sku.sku_id,
            product_id: item.product_id,
            denomination,
            quantity: item.quantity,
        });
    }
    lines.sort_by_key(|line| line.sku_id);
    Ok(PricedOrder {
        lines,
        currency: currency.unwrap_or_default(),
        total,
    })
}

fn check_sizes(request: &OrderRequest<'_>) -> Result<(), Refusal> {
    let quantities = request.items.iter().map(|item| item.quantity);
    let each_fits = quantities
        .clone()
        .all(|quantity| (1..=MAX_VOUCHERS).contains(&quantity));
    if request.items.is_empty() || request.items.len() > MAX_ITEMS {
        return Err(Refusal::ValidationFailed("items: 1 to 100".to_owned()));
    }
    if !each_fits || quantities.sum::<i32>() > MAX_VOUCHERS {
        return Err(Refusal::ValidationFailed(
            "quantity: 1 to 1,000 in all".to_owned(),
        ));
    }
    Ok(())
}

/// Parses `25`, `25.5` or `"25.50"` into 2,500 or 2,550 minor units.
pub(super) fn parse_minor_units(json: &str) -> Result<i64, Refusal> {
    let invalid =
        || Refusal::ValidationFailed("denomination: must be an amount with at most two decimals".to_owned());
    let digits = json
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(json);
    let (integer, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(integer) || !is_digits(decimals) || decimals.len() > DECIMALS {
        return Err(invalid());
    }
    format!("{integer}{decimals:0<DECIMALS$}")
        .parse()
        .ok()
        .filter(|amount| *amount > 0)
        .ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Catalogue {
        let mut catalogue = Catalogue::default();
        for (sku_id, product, denomination, currency) in [
            (2, "a", 2_500, "USD"),
            (1, "b", 1_050, "USD"),
            (3, "c", 2_500, "EUR"),
        ] {
            let currency = currency.to_owned();
            catalogue.insert(product.to_owned(), denomination, PeerSku { sku_id, currency });
        }
        catalogue
    }

    #[test]
    fn order_is_priced_and_sorted_by_sku() {
        let body = br#"{"items":[{"product_id":"a","denomination":25,"quantity":2},
            {"product_id":"b","denomination":"10.50","quantity":1}]}"#;
        let order = parse_order(body, &catalogue()).unwrap();
        let lines: Vec<_> = order
            .lines
            .iter()
            .map(|line| (line.sku_id, line.quantity))
            .collect();
        assert_eq!(lines, [(1, 1), (2, 2)]);
        assert_eq!(
            (order.total, order.currency.as_str(), order.vouchers()),
            (6_050, "USD", 3)
        );
    }

    #[test]
    fn invalid_order_has_specific_error_code() {
        let item = |product: &str, denomination: &str, quantity: i32| {
            format!(r#"{{"product_id":"{product}","denomination":{denomination},"quantity":{quantity}}}"#)
        };
        let order = |items: &[String]| format!(r#"{{"items":[{}]}}"#, items.join(","));
        let code = |body: &str| {
            let refusal = parse_order(body.as_bytes(), &catalogue()).unwrap_err();
            vouchsafe_api_client::wire::error_code(&refusal.body()).unwrap()
        };
        let table = [
            ("{".to_owned(), "MALFORMED_REQUEST"),
            ("{}".to_owned(), "VALIDATION_FAILED"),
            (r#"{"items":[],"x":1}"#.to_owned(), "VALIDATION_FAILED"),
            (order(&[]), "VALIDATION_FAILED"),
            (order(&[item("a", "25", 0)]), "VALIDATION_FAILED"),
            (order(&[item("a", "25", 1_001)]), "VALIDATION_FAILED"),
            (order(&[item("a", "25.001", 1)]), "VALIDATION_FAILED"),
            (order(&[item("a", "-25", 1)]), "VALIDATION_FAILED"),
            (order(&[item("z", "25", 1)]), "PRODUCT_NOT_FOUND"),
            (order(&[item("a", "26", 1)]), "DENOMINATION_NOT_ALLOWED"),
            (
                order(&[item("a", "25", 1), item("c", "25", 1)]),
                "CURRENCY_MISMATCH",
            ),
        ];
        for (body, expected) in table {
            assert_eq!(code(&body), expected, "{body}");
        }
    }

    #[test]
    fn amounts_are_parsed_to_minor_units() {
        for (text, expected) in [("25", 2_500), ("25.5", 2_550), ("\"0.05\"", 5), ("25.00", 2_500)] {
            assert_eq!(parse_minor_units(text), Ok(expected), "{text}");
        }
        for text in [
            "0",
            "0.00",
            "1e3",
            "25.",
            ".5",
            "",
            "1.234",
            "99999999999999999999",
        ] {
            assert!(parse_minor_units(text).is_err(), "{text}");
        }
    }
}
