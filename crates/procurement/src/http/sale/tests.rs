//! Tests of valid and invalid purchase responses.

use serde_json::{Value, json};
use time::macros::{date, datetime};
use uuid::Uuid;
use vouchsafe_domain::expiry_policy::ExpiryPolicy;
use vouchsafe_domain::identifier::normalize;
use vouchsafe_domain::money::Amount;
use vouchsafe_security::vault::code::InvalidCode;

use super::*;

const KEY: Uuid = Uuid::from_u128(7);

/// Part of every code, so that a leaked code is found.
const CANARY: &str = "CNRY";

fn request() -> BuyRequest {
    BuyRequest {
        key: PurchaseKey(KEY),
        product_id: "game-us".parse().unwrap(),
        denomination: Amount::from_minor(2_500).of("USD".parse().unwrap()),
        quantity: 3,
        requested_at: datetime!(2026-11-20 12:00 UTC),
        expiry_policy: ExpiryPolicy::months_from_issue(12),
    }
}

fn voucher(number: u32) -> Value {
    json!({
        "reference": format!("ref-{number}"), "product_id": "game-us", "denomination": 25.00, "currency": "USD",
        "price": "24.10", "expiry": "2027-06-30", "code": format!("{CANARY}-{number}"), "pin": format!("{CANARY}-PIN"),
    })
}

fn sale(status: &str, vouchers: &[Value]) -> Value {
    json!({ "purchase_id": KEY, "status": status, "vouchers": vouchers })
}

/// A sale of one voucher with this field changed.
fn with(field: &str, value: Value) -> Value {
    let mut voucher = voucher(0);
    voucher[field] = value;
    sale("completed", &[voucher])
}

fn parse(body: &Value) -> Result<PurchaseResult, VendorFailure> {
    parse_sale(body.to_string().as_bytes(), &request(), date!(2026 - 11 - 20))
}

#[test]
fn sale_is_parsed_with_its_shortfall() {
    let all: Vec<Value> = (0..3).map(voucher).collect();
    for (status, count, expected) in [
        ("completed", 3, Ok((3, Shortfall::None))),
        ("pending", 3, Ok((3, Shortfall::None))),
        ("pending", 2, Ok((2, Shortfall::Pending(None)))),
        ("pending", 0, Ok((0, Shortfall::Pending(None)))),
        ("completed", 2, Ok((2, Shortfall::Final))),
        (
            "completed",
            0,
            Err(VendorFailure::NotBought(FailureReason::NotSold)),
        ),
    ] {
        let result = parse(&sale(status, &all[..count]));
        let summary = result.map(|bought| (bought.vouchers.len(), bought.shortfall));
        assert_eq!(summary, expected, "{status} {count}");
    }
}

#[test]
fn voucher_is_parsed_with_all_its_parts() {
    let mut body = with("serial", json!("S-1"));
    body["vouchers"][0]["url"] = json!("https://redeem.example/1");
    body["vouchers"][0]["colour"] = json!({ "new": ["since", "version", 2] });
    body["more"] = json!(true);
    let result = parse(&body).unwrap().vouchers.remove(0);
    assert_eq!(result.reference.as_str(), "ref-0");
    assert_eq!(
        (result.price.to_string().as_str(), result.expiry),
        ("24.10", Some(date!(2027 - 06 - 30)))
    );
    assert_eq!(result.denomination, request().denomination);
    let parts: Vec<_> = result
        .code
        .parts()
        .map(|(part, text)| (part.into_str(), text))
        .collect();
    let expected = [
        ("code", "CNRY-0"),
        ("pin", "CNRY-PIN"),
        ("serial", "S-1"),
        ("url", "https://redeem.example/1"),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn missing_expiry_follows_the_policy() {
    let mut body = with("expiry", Value::Null);
    for _ in 0..2 {
        assert_eq!(
            parse(&body).unwrap().vouchers[0].expiry,
            Some(date!(2027 - 11 - 20))
        );
        body["vouchers"][0].as_object_mut().unwrap().remove("expiry");
    }
}

fn schema(field: &str) -> InvalidResponse {
    InvalidResponse::Schema {
        field: field.to_owned(),
    }
}

#[test]
fn invalid_response_is_rejected_and_not_quoted() {
    let mut without_code = sale("completed", &[voucher(0)]);
    without_code["vouchers"][0]
        .as_object_mut()
        .unwrap()
        .remove("code");
    let mut same_reference = sale("completed", &[voucher(0), voucher(1)]);
    same_reference["vouchers"][1]["reference"] = json!("ref-0");
    let mut same_code = sale("completed", &[voucher(0), voucher(1), voucher(2)]);
    same_code["vouchers"][2]["code"] = json!(" CNRY-0 ");
    let mut other_purchase = sale("completed", &[voucher(0)]);
    other_purchase["purchase_id"] = json!(Uuid::from_u128(8));
    let four: Vec<_> = (0..4).map(voucher).collect();
    let index = 0;
    for (body, expected) in [
        (
            with("product_id", json!("game-eu")),
            InvalidResponse::OtherSku { index },
        ),
        (
            with("denomination", json!(50)),
            InvalidResponse::OtherSku { index },
        ),
        (
            with("currency", json!("EUR")),
            InvalidResponse::OtherSku { index },
        ),
        (
            with("price", json!("-0.01")),
            InvalidResponse::NegativePrice { index },
        ),
        (
            with("expiry", json!("2026-11-19")),
            InvalidResponse::Expired {
                index,
                on: date!(2026 - 11 - 19),
            },
        ),
        (
            with("code", json!(" ")),
            InvalidResponse::Code {
                index,
                error: InvalidCode::Missing,
            },
        ),
        (
            with("pin", json!("CNRY\nCNRY")),
            InvalidResponse::Code {
                index,
                error: InvalidCode::Forbidden {
                    part: CodePart::Pin,
                    character: normalize("CNRY\nCNRY").unwrap_err(),
                },
            },
        ),
        (
            with("code", json!("6.03571E+15")),
            InvalidResponse::Damaged {
                index,
                damage: Damage::Scientific,
            },
        ),
        (
            with("reference", json!("CNRY-0")),
            InvalidResponse::ReferenceIsCode { index },
        ),
        (same_reference, InvalidResponse::RepeatedReference { index: 1 }),
        (same_code, InvalidResponse::RepeatedCode { index: 2 }),
        (other_purchase, InvalidResponse::OtherPurchase),
        (
            sale("completed", &four),
            InvalidResponse::TooMany { asked: 3, got: 4 },
        ),
        (with("reference", json!("")), schema("vouchers[0].reference")),
        (
            with("reference", json!("CNRY 0")),
            schema("vouchers[0].reference"),
        ),
        (
            with("denomination", json!("25.001")),
            schema("vouchers[0].denomination"),
        ),
        (
            with("denomination", json!(true)),
            schema("vouchers[0].denomination"),
        ),
        (with("price", json!("CNRY")), schema("vouchers[0].price")),
        (with("expiry", json!("CNRY-11-20")), schema("vouchers[0].expiry")),
        (with("currency", json!("CNRY")), schema("vouchers[0].currency")),
        (with("code", json!(["CNRY"])), schema("vouchers[0].code")),
        (without_code, schema("vouchers[0]")),
        (sale("CNRY", &[]), schema("status")),
        (
            json!({ "purchase_id": "CNRY", "status": "completed", "vouchers": [] }),
            schema("purchase_id"),
        ),
        (
            json!({ "purchase_id": KEY, "status": "completed" }),
            schema("the response"),
        ),
        (json!([KEY, "completed", []]), schema("the response")),
        (json!("CNRY"), schema("the response")),
    ] {
        let error = parse(&body).unwrap_err();
        assert_eq!(error, expected.into(), "{body}");
        assert!(!format!("{error} {error:?}").contains(CANARY), "{error:?}");
    }
    for body in ["", "CNRY", "{\"CNRY\":", "{} CNRY", "\u{feff}{}"] {
        let error = parse_sale(body.as_bytes(), &request(), date!(2026 - 11 - 20)).unwrap_err();
        assert_eq!(error, schema("the response").into(), "{body}");
    }
}

#[test]
fn debug_output_hides_codes() {
    let result = parse(&sale("completed", &[voucher(0), voucher(1)])).unwrap();
    assert!(!format!("{result:?}").contains(CANARY), "{result:?}");
}
