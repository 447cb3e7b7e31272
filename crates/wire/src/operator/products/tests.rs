//! Validation of each field of a product.

use time::macros::datetime;

use super::*;

const PLAIN: &str = r#"{"name":"Game Card","brand":"Acme","category_id":"games","vendor":"mock","currency":"USD",
    "countries":["US","DE","US"],"denominations":[50,"25.00",10.5],"expiry_policy":{"type":"NONE"},
    "redemption":{},"route":"stock"}"#;

fn product(text: &str) -> Result<Product, InvalidRequest> {
    let request: ProductRequest = json::parse(text.as_bytes())?;
    request.into_product(
        "game-card".parse().unwrap(),
        &Catalogue::default(),
        datetime!(2026-11-20 12:00 UTC),
    )
}

fn with(field: &str, value: &str) -> String {
    let mut all: serde_json::Map<String, serde_json::Value> = serde_json::from_str(PLAIN).unwrap();
    all.insert(field.to_owned(), serde_json::from_str(value).unwrap());
    serde_json::to_string(&all).unwrap()
}

#[test]
fn minimal_product_gets_sorted_values_and_defaults() {
    let product = product(PLAIN).unwrap();
    assert_eq!(
        product
            .denominations
            .iter()
            .map(|money| money.amount.minor())
            .collect::<Vec<_>>(),
        [1_050, 2_500, 5_000]
    );
    assert_eq!(product.countries, ["DE", "US"]);
    assert_eq!(
        (product.approval, product.returnable, product.discontinued),
        (ApprovalPolicy::Rule, false, false)
    );
    assert_eq!(
        (product.min_validity_days, product.low_stock_at),
        (0, DEFAULT_LOW_STOCK_AT)
    );
}

#[test]
fn range_alone_is_accepted() {
    let mut text = with("denomination_range", r#"{"min":10,"max":"50.00","step":5}"#);
    text = text.replace(r#""denominations":[50,"25.00",10.5]"#, r#""denominations":[]"#);
    let range = product(&text).unwrap().denomination_range.unwrap();
    let bounds = [range.min, range.max, range.step].map(|money| money.amount.minor());
    assert_eq!(bounds, [1_000, 5_000, 500]);
}

#[test]
fn invalid_value_names_its_field() {
    for (field, value, named) in [
        ("name", r#""""#, "name"),
        ("brand", r#"" ""#, "brand"),
        ("category_id", r#""Not a slug""#, "category_id"),
        ("vendor", r#""""#, "vendor"),
        ("currency", r#""XYZ""#, "currency"),
        ("countries", r#"["Germany"]"#, "countries"),
        ("denominations", "[]", "denominations"),
        ("denominations", "[0]", "denominations[0]"),
        ("denominations", "[5,-5]", "denominations[1]"),
        ("denominations", "[25.001]", "denominations[0]"),
        ("denominations", r#"[25,"25.00"]"#, "denominations[1]"),
        ("denominations", "[10000000001]", "denominations[0]"),
        (
            "denomination_range",
            r#"{"min":10,"max":5,"step":1}"#,
            "denomination_range",
        ),
        (
            "denomination_range",
            r#"{"min":10,"max":12,"step":5}"#,
            "denomination_range",
        ),
        (
            "denomination_range",
            r#"{"min":10,"max":12,"step":0}"#,
            "denomination_range",
        ),
        (
            "expiry_policy",
            r#"{"type":"NONE","value":1}"#,
            "expiry_policy.value",
        ),
        (
            "expiry_policy",
            r#"{"type":"FIXED_DATE"}"#,
            "expiry_policy.expires_on",
        ),
        (
            "expiry_policy",
            r#"{"type":"FIXED_DATE","value":"2027-02-28","expires_on":"2027-02-27"}"#,
            "expiry_policy.value",
        ),
        (
            "expiry_policy",
            r#"{"type":"FIXED_DATE","valid_months":12}"#,
            "expiry_policy.valid_months",
        ),
        (
            "expiry_policy",
            r#"{"type":"MONTHS_FROM_ISSUE","valid_months":1201}"#,
            "expiry_policy.valid_months",
        ),
        (
            "expiry_policy",
            r#"{"type":"MONTHS_FROM_ISSUE","expires_on":"2027-02-27"}"#,
            "expiry_policy.expires_on",
        ),
        (
            "expiry_policy",
            r#"{"type":"FIXED_DATE","value":"2027-02-30"}"#,
            "expiry_policy.value",
        ),
        (
            "expiry_policy",
            r#"{"type":"MONTHS_FROM_ISSUE","value":0}"#,
            "expiry_policy.value",
        ),
        ("expiry_policy", r#"{"type":"SOMETIMES"}"#, "expiry_policy.type"),
        ("route", r#""air""#, "route"),
        ("low_stock_at", "100001", "low_stock_at"),
        ("min_validity_days", "3651", "min_validity_days"),
        ("min_validity_days", "-1", "min_validity_days"),
        ("colour", "1", "colour"),
    ] {
        let error = product(&with(field, value)).unwrap_err();
        let found: Vec<_> = error.details.iter().map(|detail| detail.field.as_str()).collect();
        assert_eq!(found, [named], "{field} {value}: {error}");
    }
}

#[test]
fn errors_of_all_fields_are_reported() {
    let text = with("name", r#""""#).replace("\"USD\"", "\"JPY\"");
    let error = product(&text).unwrap_err();
    let found: Vec<_> = error.details.iter().map(|detail| detail.field.as_str()).collect();
    assert_eq!(
        found,
        ["name", "denominations[2]"],
        "25.00 JPY has no decimals but zeros"
    );
}
