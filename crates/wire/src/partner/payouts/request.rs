//! Parsing, validation and masking of the `POST /payouts` body.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use vouchsafe_domain::money::{Amount, AmountText, Currency, Money};
use zeroize::Zeroizing;

use super::iban;
use crate::error_body::{FieldErrors, InvalidRequest};
use crate::json;
use crate::partner::limits::{self, NO_CONTROL_CHARACTERS, parse_reference};

/// Destination types (contract §3).
const DESTINATION_TYPES: [&str; 3] = [BANK_ACCOUNT, "card", "other"];

const BANK_ACCOUNT: &str = "bank_account";

const TYPE_FIELD: &str = "type";

/// Maximum fields of a destination, its type included.
const MAX_FIELDS: usize = 20;

const MAX_NAME_CHARS: usize = 40;

const MAX_VALUE_CHARS: usize = 200;

/// A masked value shows its last characters, if it has at least twice as many.
const VISIBLE_CHARS: usize = 4;

const MASK: &str = "****";

/// The payout to request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PayoutRequest {
    /// Amount to pay out, greater than zero.
    amount: AmountText,
    /// Currency of the wallet to debit.
    #[schema(value_type = Currency)]
    currency: String,
    /// Where to send the money.
    destination: RequestedDestination,
    #[serde(default)]
    #[schema(schema_with = reference_schema)]
    reference: Option<String>,
}

fn reference_schema() -> ObjectBuilder {
    limits::reference_schema("Your reference for the payout.")
}

/// Destination of a payout: its type and the fields that the operator needs to pay it out.
///
/// Its values are wiped when it is dropped: account numbers are stored encrypted only.
pub(super) struct RequestedDestination(BTreeMap<String, Zeroizing<String>>);

impl fmt::Debug for RequestedDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestedDestination({} fields)", self.0.len())
    }
}

/// A validated payout request.
pub struct RequestedPayout {
    pub money: Money,
    /// The text of a JSON object.
    pub destination: Zeroizing<String>,
    pub masked_destination: String,
    pub reference: Option<String>,
}

impl fmt::Debug for RequestedPayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestedPayout")
            .field("money", &self.money)
            .field("destination", &self.masked_destination)
            .finish_non_exhaustive()
    }
}

/// Parses and validates a payout request.
///
/// # Errors
/// `MALFORMED_REQUEST`, or `VALIDATION_FAILED` with every invalid field.
pub fn parse(body: &[u8]) -> Result<RequestedPayout, InvalidRequest> {
    let PayoutRequest {
        amount,
        currency,
        destination: RequestedDestination(fields),
        reference,
    } = json::parse(body)?;
    let mut errors = FieldErrors::default();
    let money = parse_money(&amount, &currency, &mut errors);
    check_destination(&fields, &mut errors);
    let reference = parse_reference(reference.as_deref())
        .map_err(|message| errors.push("reference", message))
        .ok();
    let (money, reference) = errors.or(money.zip(reference))?;
    Ok(RequestedPayout {
        money,
        masked_destination: destination_json(&fields, mask_value).to_string(),
        destination: destination_json(&fields, |_, value| value.into()),
        reference,
    })
}

fn parse_money(amount: &AmountText, currency: &str, errors: &mut FieldErrors) -> Option<Money> {
    let currency: Currency = match currency.parse() {
        Ok(currency) => currency,
        Err(error) => {
            errors.push("currency", format!("{error}"));
            return None;
        }
    };
    match amount.parse(currency) {
        Ok(amount) if amount > Amount::ZERO => Some(amount.of(currency)),
        Ok(_) => {
            errors.push("amount", "expected an amount greater than zero");
            None
        }
        Err(error) => {
            errors.push("amount", error.to_string());
            None
        }
    }
}

fn check_destination(fields: &BTreeMap<String, Zeroizing<String>>, errors: &mut FieldErrors) {
    match fields.get(TYPE_FIELD) {
        Some(kind) if DESTINATION_TYPES.contains(&kind.as_str()) => {}
        Some(_) => errors.push("destination.type", "expected bank_account, card or other"),
        None => errors.push("destination.type", "missing field `type`"),
    }
    match fields.get(TYPE_FIELD).map(|kind| kind.as_str()) {
        Some(BANK_ACCOUNT) => check_bank_account(fields, errors),
        Some(_) if fields.len() == 1 => {
            errors.push(
                "destination",
                "expected at least one field that says where to send the money",
            );
        }
        _ => {}
    }
    let is_within = |text: &str, most: usize| {
        (1..=most).contains(&text.chars().count()) && !text.contains(char::is_control)
    };
    if !fields
        .iter()
        .all(|(name, value)| is_within(name, MAX_NAME_CHARS) && is_within(value, MAX_VALUE_CHARS))
    {
        let message = format!(
            "expected names of 1 to {MAX_NAME_CHARS} and values of 1 to {MAX_VALUE_CHARS} characters, without control characters"
        );
        errors.push("destination", message);
    }
    if fields.len() > MAX_FIELDS {
        errors.push("destination", format!("expected at most {MAX_FIELDS} fields"));
    }
}

/// A bank account has a number, and an IBAN proves by its check digits that it was not mistyped.
fn check_bank_account(fields: &BTreeMap<String, Zeroizing<String>>, errors: &mut FieldErrors) {
    match fields.get("iban") {
        Some(iban) if !iban::is_valid(iban) => {
            errors.push(
                "destination.iban",
                "expected an IBAN; its check digits do not fit",
            );
        }
        None if !fields.contains_key("account_number") => {
            errors.push(
                "destination.iban",
                "expected an `iban`, or an `account_number` where there is none",
            );
        }
        _ => {}
    }
}

/// Masks a value except for its last characters. The type is not masked.
fn mask_value<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if name == TYPE_FIELD {
        return value.into();
    }
    let count = value.chars().count();
    let visible = if count >= 2 * VISIBLE_CHARS {
        VISIBLE_CHARS
    } else {
        0
    };
    let end: String = value.chars().skip(count - visible).collect();
    format!("{MASK}{end}").into()
}

/// Formats a destination as a JSON object, `type` first.
fn destination_json<'a>(
    fields: &'a BTreeMap<String, Zeroizing<String>>,
    format_value: impl Fn(&str, &'a str) -> Cow<'a, str>,
) -> Zeroizing<String> {
    // With capacity for the longest escapes of all bytes: growing would leave unwiped copies in memory.
    let capacity = |(name, value): (&String, &Zeroizing<String>)| 6 * (name.len() + value.len() + 1);
    let capacity = 2 + fields.iter().map(capacity).sum::<usize>();
    let mut json = Zeroizing::new(Vec::with_capacity(capacity));
    let (kind, others): (Vec<_>, Vec<_>) = fields.iter().partition(|(name, _)| *name == TYPE_FIELD);
    json.push(b'{');
    for (index, (name, value)) in kind.into_iter().chain(others).enumerate() {
        if index > 0 {
            json.push(b',');
        }
        push_json_text(&mut json, name);
        json.push(b':');
        push_json_text(&mut json, &format_value(name, value));
    }
    json.push(b'}');
    let Ok(text) = String::from_utf8(std::mem::take(&mut *json)) else {
        unreachable!("JSON is UTF-8");
    };
    Zeroizing::new(text)
}

fn push_json_text(json: &mut Vec<u8>, text: &str) {
    let Ok(()) = serde_json::to_writer(json, text) else {
        unreachable!("every text has a JSON form, and memory accepts it");
    };
}

impl<'de> Deserialize<'de> for RequestedDestination {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(StringMapVisitor).map(Self)
    }
}

/// Deserializes an object of strings and rejects repeated names.
struct StringMapVisitor;

impl<'de> Visitor<'de> for StringMapVisitor {
    type Value = BTreeMap<String, Zeroizing<String>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            match fields.entry(name) {
                Entry::Vacant(entry) => {
                    entry.insert(Zeroizing::new(value));
                }
                Entry::Occupied(_) => return Err(A::Error::custom("a name occurs more than once")),
            }
        }
        Ok(fields)
    }
}

impl PartialSchema for RequestedDestination {
    fn schema() -> RefOr<Schema> {
        let text = |most: usize| {
            ObjectBuilder::new()
                .schema_type(Type::String)
                .min_length(Some(1))
                .max_length(Some(most))
                .pattern(Some(NO_CONTROL_CHARACTERS))
        };
        let kind = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("Kind of destination."))
            .enum_values(Some(DESTINATION_TYPES));
        let account = |field: &str| json!({ "type": "object", "properties": { field: { "type": "string" } }, "required": [field] });
        let destination = ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some(
                "Destination of the payout: its type and the fields needed to pay it out. A `bank_account` has an `iban`, whose \
                 check digits are verified, or an `account_number`; the other types have at least one field of yours. Responses \
                 mask the values and show at most their last four characters.",
            ))
            .property(TYPE_FIELD, kind)
            .required(TYPE_FIELD)
            .min_properties(Some(2))
            .max_properties(Some(MAX_FIELDS))
            .extensions(Some(Extensions::from_iter([
                ("if", json!({ "properties": { TYPE_FIELD: { "const": BANK_ACCOUNT } } })),
                ("then", json!({ "anyOf": [account("iban"), account("account_number")] })),
            ])))
            .property_names(Some(Schema::from(text(MAX_NAME_CHARS).build())))
            .additional_properties(Some(AdditionalProperties::from(Schema::from(text(MAX_VALUE_CHARS).build()))));
        destination.into()
    }
}

impl ToSchema for RequestedDestination {
    fn name() -> Cow<'static, str> {
        "PayoutDestination".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_code::Code;

    fn request(destination: &str) -> Vec<u8> {
        format!(r#"{{"amount":"12.50","currency":"USD","destination":{destination}}}"#).into_bytes()
    }

    #[test]
    fn destination_is_stored_in_full_and_masked_in_responses() {
        let payout = parse(&request(
            r#"{"iban":"DE89370400440532013000","type":"bank_account","name":"Ann \"A\" Lee","bic":"X"}"#,
        ))
        .unwrap();
        assert_eq!(payout.money.amount.minor(), 1_250);
        assert_eq!(
            *payout.destination,
            r#"{"type":"bank_account","bic":"X","iban":"DE89370400440532013000","name":"Ann \"A\" Lee"}"#
        );
        assert!(!format!("{payout:?}").contains("DE89"), "{payout:?}");
        assert_eq!(
            payout.masked_destination,
            r#"{"type":"bank_account","bic":"****","iban":"****3000","name":"**** Lee"}"#
        );
    }

    #[test]
    fn invalid_payout_field_is_named_in_the_error() {
        let field = |body: &[u8]| {
            let error = parse(body).unwrap_err();
            assert_eq!(error.code, Code::ValidationFailed);
            error.details[0].field.clone()
        };
        for (destination, expected) in [
            ("{}", "destination.type"),
            (
                r#"{"type":"bank_account","name":"Acme GmbH"}"#,
                "destination.iban",
            ),
            (
                r#"{"type":"bank_account","iban":"DE88370400440532013000"}"#,
                "destination.iban",
            ),
            (r#"{"type":"card"}"#, "destination"),
            (r#"{"type":"other"}"#, "destination"),
            (r#"{"type":"cash"}"#, "destination.type"),
            (r#"{"type":"other","x":""}"#, "destination"),
            (r#"{"type":"other","x":"a\u0000"}"#, "destination"),
            (r#"{"type":"other","x":7}"#, "destination.x"),
            (r#"{"type":"other","type":"card"}"#, "destination"),
            ("[]", "destination"),
            ("null", "destination"),
        ] {
            assert_eq!(field(&request(destination)), expected, "{destination}");
        }
        for (body, expected) in [
            (
                r#"{"amount":0,"currency":"USD","destination":{"type":"card"}}"#,
                "amount",
            ),
            (
                r#"{"amount":-1,"currency":"USD","destination":{"type":"card"}}"#,
                "amount",
            ),
            (
                r#"{"amount":1.001,"currency":"USD","destination":{"type":"card"}}"#,
                "amount",
            ),
            (
                r#"{"amount":1,"currency":"usd","destination":{"type":"card"}}"#,
                "currency",
            ),
            (r#"{"amount":1,"currency":"USD"}"#, "destination"),
            (
                r#"{"amount":1,"currency":"USD","destination":{"type":"card","pan":"x"},"reference":"a\u009bb"}"#,
                "reference",
            ),
        ] {
            assert_eq!(field(body.as_bytes()), expected, "{body}");
        }
    }
}
