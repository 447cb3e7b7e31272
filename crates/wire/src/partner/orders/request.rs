//! Parsing and validation of the `POST /orders` body.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use vouchsafe_domain::bounds::List;
use vouchsafe_domain::catalogue::{MAX_LINES, MAX_VOUCHERS, RequestedLine, RequestedOrder};
use vouchsafe_domain::money::{AmountText, Currency};
use vouchsafe_domain::order::Fulfilment;
use vouchsafe_domain::product::ProductId;
use vouchsafe_domain::whole_number;

use crate::error_body::{FieldErrors, InvalidRequest};
use crate::json::{self, JsonObject};
use crate::partner::limits::{self, NO_CONTROL_CHARACTERS, TEXT_WITH_LINES, parse_reference};

type OrderRequestItems = List<OrderRequestItem, 1, MAX_LINES>;

/// Maximum keys of the metadata object (contract §3).
const MAX_METADATA_KEYS: usize = 50;

/// Maximum characters of a metadata key.
const MAX_METADATA_KEY_CHARS: usize = 40;

/// Maximum bytes of a metadata value as JSON text.
const MAX_METADATA_VALUE_BYTES: usize = 512;

/// Maximum bytes of metadata as JSON text. Each event of the order contains it, and events stay below 100,000
/// bytes.
const MAX_METADATA_BYTES: usize = 32 * 1_024;

/// The order to place.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderRequest {
    /// Items to order: at most 1,000 vouchers in total, all in one currency.
    #[schema(value_type = OrderRequestItems)]
    items: Vec<JsonObject<OrderRequestItem>>,
    /// The currency you expect. The order is rejected if the items are in another one.
    #[serde(default)]
    #[schema(value_type = Option<Currency>)]
    currency: Option<String>,
    #[serde(default)]
    #[schema(schema_with = reference_schema)]
    reference: Option<String>,
    /// Your own data about the order, returned unchanged.
    #[serde(default)]
    metadata: Option<Metadata>,
    /// Allowed source of the vouchers; `AUTO` by default.
    #[serde(default, deserialize_with = "json::optional_enum_value")]
    fulfilment: Option<Fulfilment>,
}

/// An item to order.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct OrderRequestItem {
    /// Product to order.
    #[schema(value_type = ProductId)]
    product_id: String,
    /// Face value: one of the product's denominations, or a step of its denomination range.
    denomination: AmountText,
    #[serde(deserialize_with = "whole_number::required")]
    #[schema(schema_with = quantity_schema)]
    quantity: u32,
}

fn reference_schema() -> ObjectBuilder {
    limits::reference_schema(
        "Your reference for the order, for example a purchase order number. `GET /orders` can filter by it.",
    )
}

fn quantity_schema() -> ObjectBuilder {
    limits::whole_number(1, MAX_VOUCHERS, "Number of vouchers.")
}

/// Parses and validates an order request.
///
/// # Errors
/// `MALFORMED_REQUEST`, or `VALIDATION_FAILED` with every invalid field.
pub fn parse(body: &[u8]) -> Result<RequestedOrder, InvalidRequest> {
    let request: OrderRequest = json::parse(body)?;
    let mut errors = FieldErrors::default();
    check_items(&request.items, &mut errors);
    let reference = parse_reference(request.reference.as_deref())
        .map_err(|message| errors.push("reference", message))
        .ok();
    let currency = request
        .currency
        .as_deref()
        .map(str::parse::<Currency>)
        .transpose();
    if let Err(error) = &currency {
        errors.push("currency", error.to_string());
    }
    let (currency, reference) = errors.or(currency.ok().zip(reference))?;
    Ok(RequestedOrder {
        lines: request
            .items
            .into_iter()
            .map(|JsonObject(item)| item.into_line())
            .collect(),
        currency,
        fulfilment: request.fulfilment.unwrap_or_default(),
        reference,
        metadata: request.metadata.map(|metadata| metadata.0),
    })
}

fn check_items(items: &[JsonObject<OrderRequestItem>], errors: &mut FieldErrors) {
    if items.is_empty() || items.len() > MAX_LINES {
        errors.push("items", format!("expected 1 to {MAX_LINES} items"));
    }
    for (index, JsonObject(item)) in items.iter().enumerate().take(MAX_LINES) {
        if item.quantity == 0 || item.quantity > MAX_VOUCHERS {
            errors.push(
                format!("items[{index}].quantity"),
                format!("expected 1 to {MAX_VOUCHERS}"),
            );
        }
        if item.product_id.is_empty() {
            errors.push(format!("items[{index}].product_id"), "expected a product id");
        }
    }
    let vouchers: u64 = items
        .iter()
        .map(|JsonObject(item)| u64::from(item.quantity))
        .sum();
    if vouchers > u64::from(MAX_VOUCHERS) {
        errors.push(
            "items",
            format!("expected at most {MAX_VOUCHERS} vouchers in total"),
        );
    }
}

impl OrderRequestItem {
    fn into_line(self) -> RequestedLine {
        RequestedLine {
            product_id: self.product_id,
            denomination: self.denomination,
            quantity: self.quantity,
        }
    }
}

/// A flat JSON object of scalars, stored as raw text so that responses return it byte for byte.
#[derive(Debug)]
pub(super) struct Metadata(Arc<str>);

impl PartialSchema for Metadata {
    fn schema() -> RefOr<Schema> {
        let key = ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(1))
            .max_length(Some(MAX_METADATA_KEY_CHARS))
            .pattern(Some(NO_CONTROL_CHARACTERS));
        let value = ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::String, Type::Number, Type::Boolean]))
            .max_length(Some(MAX_METADATA_VALUE_BYTES - 2))
            .pattern(Some(TEXT_WITH_LINES))
            .build();
        let metadata = ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some(format!(
                "Up to {MAX_METADATA_KEYS} strings, numbers and booleans, each at most \
                 {MAX_METADATA_VALUE_BYTES} bytes of JSON, together at most {MAX_METADATA_BYTES}. No \
                 control characters, except tab and newline in values. Returned unchanged."
            )))
            .max_properties(Some(MAX_METADATA_KEYS))
            .property_names(Some(Schema::from(key.build())))
            .additional_properties(Some(AdditionalProperties::from(Schema::from(value))));
        metadata.into()
    }
}

impl ToSchema for Metadata {}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        if raw.get().len() > MAX_METADATA_BYTES {
            return Err(D::Error::custom(format!(
                "expected at most {MAX_METADATA_BYTES} bytes"
            )));
        }
        serde_json::from_str::<MetadataValidator>(raw.get()).map_err(D::Error::custom)?;
        Ok(Self(Arc::from(raw.get())))
    }
}

/// Deserializes metadata only to validate it.
struct MetadataValidator;

impl<'de> Deserialize<'de> for MetadataValidator {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetadataValidator)
    }
}

impl<'de> Visitor<'de> for MetadataValidator {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings, numbers and booleans")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let value: &RawValue = map.next_value()?;
            check_entry(&key, value.get()).map_err(A::Error::custom)?;
            if !keys.insert(key) {
                return Err(A::Error::custom("a key is repeated"));
            }
            if keys.len() > MAX_METADATA_KEYS {
                return Err(A::Error::custom(format!(
                    "expected at most {MAX_METADATA_KEYS} keys"
                )));
            }
        }
        Ok(self)
    }
}

fn check_entry(key: &str, value: &str) -> Result<(), String> {
    if key.is_empty() || key.chars().count() > MAX_METADATA_KEY_CHARS {
        return Err(format!(
            "expected keys of 1 to {MAX_METADATA_KEY_CHARS} characters"
        ));
    }
    if value.starts_with(['{', '[']) || value == "null" {
        return Err("expected strings, numbers and booleans as values".to_owned());
    }
    if value.len() > MAX_METADATA_VALUE_BYTES {
        return Err(format!(
            "expected values of at most {MAX_METADATA_VALUE_BYTES} bytes"
        ));
    }
    // A lone surrogate passes the raw parser, which does not decode strings, but fails here.
    let decoded: serde_json::Value =
        serde_json::from_str(value).map_err(|_| "expected valid text and numbers".to_owned())?;
    let is_forbidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if key.contains(char::is_control) || decoded.as_str().is_some_and(|text| text.contains(is_forbidden)) {
        return Err("expected text without control characters, except tab and newline in values".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_code::Code;

    fn order(rest: &str) -> Vec<u8> {
        format!(r#"{{"items":[{{"product_id":"sbx-instant","denomination":25,"quantity":2}}]{rest}}}"#)
            .into_bytes()
    }

    fn field(body: &[u8]) -> String {
        let error = parse(body).unwrap_err();
        assert_eq!(error.code, Code::ValidationFailed, "{error}");
        error.details[0].field.clone()
    }

    #[test]
    fn request_with_every_field_is_parsed() {
        let rest = r#","currency":"USD","reference":"po-1","metadata":{"a":"b","n":1.50,"t":true},"fulfilment":"CACHE_ONLY""#;
        let request = parse(&order(rest)).unwrap();
        assert_eq!((request.lines.len(), request.lines[0].quantity), (1, 2));
        assert_eq!(
            request.metadata.as_deref(),
            Some(r#"{"a":"b","n":1.50,"t":true}"#)
        );
        assert_eq!(request.fulfilment, Fulfilment::CacheOnly);
    }

    #[test]
    fn field_out_of_range_is_named_in_the_error() {
        let item = |quantity: &str| {
            format!(r#"{{"items":[{{"product_id":"p","denomination":25,"quantity":{quantity}}}]}}"#)
                .into_bytes()
        };
        for quantity in ["0", "1001", "-1", "1.5", "4294967296", "\"1\"", "null"] {
            assert_eq!(field(&item(quantity)), "items[0].quantity", "{quantity}");
        }
        for (body, named) in [
            (r#"{"items":[["p",25,1]]}"#, "items[0]"),
            (r#"{"items":[7]}"#, "items[0]"),
            (r#"{"items":[{}]}"#, "items[0].product_id"),
            (
                r#"{"items":[{"product_id":"","denomination":25,"quantity":1}]}"#,
                "items[0].product_id",
            ),
            (
                r#"{"items":[{"product_id":"p","denomination":true,"quantity":1}]}"#,
                "items[0].denomination",
            ),
            (r#"{"items":[]}"#, "items"),
            (r#"{"items":{}}"#, "items"),
            (r#"{"items":null}"#, "items"),
            (r"{}", "items"),
        ] {
            assert_eq!(field(body.as_bytes()), named, "{body}");
        }
        assert_eq!(field(&order(r#","currency":"usd""#)), "currency");
        assert_eq!(field(&order(r#","currency":840"#)), "currency");
        assert_eq!(field(&order(r#","colour":"red""#)), "colour");
        assert_eq!(field(&order(r#","reference":7"#)), "reference");
        assert_eq!(field(&order(r#","reference":"a\u0000b""#)), "reference");
        assert_eq!(
            field(&order(&format!(r#","reference":"{}""#, "x".repeat(129)))),
            "reference"
        );
        assert_eq!(field(&order(r#","reference":"a\u001b[2Jb""#)), "reference");
        assert_eq!(field(&order(r#","reference":"a\tb""#)), "reference");
        assert_eq!(field(&order(",\"reference\":\"po-1\u{200b}\"")), "reference");
        let spelled = parse(&order(",\"reference\":\" So\u{308}hne\u{a0}\"")).unwrap();
        assert_eq!(spelled.reference.as_deref(), Some("S\u{f6}hne"));
        assert_eq!(field(&order(r#","fulfilment":"MAYBE""#)), "fulfilment");
    }

    #[test]
    fn items_and_vouchers_of_an_order_are_limited() {
        let items = |lines: usize, quantity: u32| {
            let item = format!(r#"{{"product_id":"p","denomination":25,"quantity":{quantity}}}"#);
            format!(r#"{{"items":[{}]}}"#, vec![item; lines].join(",")).into_bytes()
        };
        for (lines, quantity) in [(1, 1_000), (100, 1), (100, 10), (2, 500)] {
            assert_eq!(parse(&items(lines, quantity)).unwrap().lines.len(), lines);
        }
        for (lines, quantity) in [(101, 1), (100, 11), (2, 501)] {
            assert_eq!(field(&items(lines, quantity)), "items", "{lines} × {quantity}");
        }
    }

    #[test]
    fn metadata_nested_or_too_large_is_rejected() {
        let many: Vec<String> = (0..51).map(|n| format!(r#""k{n}":1"#)).collect();
        let many = many.join(",");
        for metadata in [
            r#"{"a":{}}"#,
            r#"{"a":[1]}"#,
            r#"{"a":null}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"":1}"#,
            r#"{"a":1e999}"#,
            r#"{"a":"\u001b[2J"}"#,
            r#"{"a":"\u009b"}"#,
            r#"{"a":"\r\n"}"#,
            r#"{"a\n":1}"#,
            r#"[1]"#,
            r#""text""#,
            &format!("{{{many}}}"),
            &format!(r#"{{"a":"{}"}}"#, "x".repeat(600)),
            &format!(r#"{{"a":1{}}}"#, " ".repeat(MAX_METADATA_BYTES)),
        ] {
            assert_eq!(
                field(&order(&format!(r#","metadata":{metadata}"#))),
                "metadata",
                "{metadata}"
            );
        }
        let lone_surrogate = parse(&order(r#","metadata":{"a":"\ud800"}"#)).unwrap_err();
        assert_eq!(lone_surrogate.code, Code::MalformedRequest);
        for accepted in [r#"{"a":"\\u0000"}"#, r#"{"a":"line\n\tline"}"#] {
            let request = parse(&order(&format!(r#","metadata":{accepted}"#))).unwrap();
            assert_eq!(request.metadata.as_deref(), Some(accepted));
        }
    }
}

#[cfg(test)]
mod properties;
