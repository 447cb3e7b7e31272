//! Property tests of order parsing: any body is parsed exactly or rejected with one of two errors.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use vouchsafe_domain::identifier::normalize_stored;

use super::*;
use crate::error_code::Code;

/// A valid order, from which the test builds a body.
#[derive(Debug, Clone)]
struct ExpectedOrder {
    lines: Vec<(String, u32, u32)>,
    reference: Option<String>,
    metadata: Option<BTreeMap<String, String>>,
}

impl ExpectedOrder {
    fn body(&self) -> Value {
        let item = |(product_id, cents, quantity): &(String, u32, u32)| {
            let denomination = format!("{}.{:02}", cents / 100, cents % 100);
            json!({ "product_id": product_id, "denomination": denomination, "quantity": quantity })
        };
        let items: Vec<_> = self.lines.iter().map(item).collect();
        json!({ "items": items, "reference": self.reference, "metadata": self.metadata })
    }
}

fn expected_order() -> impl Strategy<Value = ExpectedOrder> {
    let line = ("[a-z0-9][a-z0-9_.-]{0,20}", 1..10_000_000_u32, 1..=10_u32);
    let text = "[^\\p{Cc}]{0,40}";
    (
        proptest::collection::vec(line, 1..=20),
        proptest::option::of(text),
        proptest::option::of(proptest::collection::btree_map(
            "[^\\p{Cc}]{1,20}",
            "([^\\p{Cc}]|[\n\t]){0,20}",
            0..5,
        )),
    )
        .prop_map(|(lines, reference, metadata)| ExpectedOrder {
            lines,
            // As the response returns it.
            reference: reference.map(|text: String| normalize_stored(&text).into_owned()),
            metadata,
        })
}

/// Whether the body is parsed, or rejected with one of the two errors of a body.
fn is_parsed_or_rejected(body: &[u8]) -> bool {
    match parse(body) {
        Ok(order) => (1..=MAX_LINES).contains(&order.lines.len()),
        Err(error) => matches!(error.code, Code::MalformedRequest | Code::ValidationFailed),
    }
}

proptest! {
    #[test]
    fn valid_order_round_trips(expected in expected_order()) {
        let order = parse(expected.body().to_string().as_bytes()).unwrap();
        let usd: Currency = "USD".parse().unwrap();
        let lines: Vec<_> = order
            .lines
            .iter()
            .map(|line| (line.product_id.clone(), line.denomination.parse(usd).unwrap().minor(), line.quantity))
            .collect();
        let expected_lines: Vec<_> = expected
            .lines
            .iter()
            .map(|(product_id, cents, quantity)| (product_id.clone(), i64::from(*cents), *quantity))
            .collect();
        prop_assert_eq!(lines, expected_lines);
        prop_assert_eq!(order.reference, expected.reference);
        let metadata = order.metadata.map(|text| serde_json::from_str(&text).unwrap());
        prop_assert_eq!(metadata, expected.metadata);
    }

    #[test]
    fn any_bytes_are_parsed_or_rejected(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(is_parsed_or_rejected(&body));
    }

    #[test]
    fn order_with_a_byte_changed_is_parsed_or_rejected(
        expected in expected_order(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut body = expected.body().to_string().into_bytes();
        let at = at.index(body.len());
        body[at] = byte;
        prop_assert!(is_parsed_or_rejected(&body));
    }

    #[test]
    fn quantity_not_a_whole_number_within_the_limit_is_rejected(quantity in "-?[0-9]{1,12}(\\.[0-9]{1,3})?(e[0-9])?") {
        let body = format!(r#"{{"items":[{{"product_id":"p","denomination":1,"quantity":{quantity}}}]}}"#);
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&quantity).is_ok();
        let within = is_json && quantity.parse::<f64>().is_ok_and(|n| {
            (1.0..=f64::from(MAX_VOUCHERS)).contains(&n) && n.fract() == 0.0
        });
        prop_assert_eq!(parse(body.as_bytes()).is_ok(), within, "{}", quantity);
    }
}
