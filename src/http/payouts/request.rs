//! A payout request on the wire: what may be in it, and how much of where it goes is shown again.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use vouchsafe_actors::domain::money::{Amount, AmountText, Currency, Money};

use crate::errors::{ApiError, Detail};
use crate::http::orders::request::MAX_REFERENCE;
use crate::json;

/// By which way money leaves (contract §3).
const WAYS: [&str; 3] = ["bank_account", "card", "other"];

/// The field that names the way.
const WAY: &str = "type";

/// Most strings that say where a payout goes, the way among them.
const MAX_STRINGS: usize = 20;

/// Longest name of one, in characters.
const MAX_NAME: usize = 40;

/// Longest value of one, in characters.
const MAX_VALUE: usize = 200;

/// How much of a value is shown: its last characters, where it has at least twice as many.
const SHOWN: usize = 4;

/// What stands for what is not shown.
const MASK: &str = "****";

/// Money that is to leave a wallet.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct PayoutRequest {
    /// How much: more than nothing.
    amount: AmountText,
    /// From which wallet.
    #[schema(value_type = Currency)]
    currency: String,
    /// Where to.
    destination: PayoutDestination,
    /// What you call it.
    #[serde(default)]
    #[schema(max_length = 128, pattern = "^[^\\u0000]*$")]
    reference: Option<String>,
}

/// Where a payout goes: by which way, and the strings that whoever pays needs.
#[derive(Debug)]
pub(in crate::http) struct PayoutDestination(BTreeMap<String, String>);

/// A request that can be carried out.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) money: Money,
    /// The text of a JSON object.
    pub(super) destination: String,
    /// The same, masked.
    pub(super) masked: String,
    pub(super) reference: Option<String>,
}

/// Reads and checks a payout request.
///
/// # Errors
/// `MALFORMED_REQUEST` and `VALIDATION_FAILED`, the latter with every field that is wrong.
pub(super) fn parse(body: &[u8]) -> Result<Wanted, ApiError> {
    let PayoutRequest {
        amount,
        currency,
        destination: PayoutDestination(strings),
        reference,
    } = json::parse(body)?;
    let mut wrong = Vec::new();
    let money = read_money(&amount, &currency, &mut wrong);
    check_destination(&strings, &mut wrong);
    let named = reference.as_deref().unwrap_or_default();
    if named.chars().count() > MAX_REFERENCE || named.contains('\0') {
        let message = format!("expected at most {MAX_REFERENCE} characters, none of them NUL");
        refuse(&mut wrong, "reference", message);
    }
    let (Some(money), true) = (money, wrong.is_empty()) else {
        return Err(ApiError::invalid_fields(wrong));
    };
    Ok(Wanted {
        money,
        masked: text(&strings, masked),
        destination: text(&strings, |_, value| value.to_owned()),
        reference,
    })
}

fn read_money(amount: &AmountText, currency: &str, wrong: &mut Vec<Detail>) -> Option<Money> {
    let currency: Currency = match currency.parse() {
        Ok(currency) => currency,
        Err(error) => {
            refuse(wrong, "currency", format!("{error}"));
            return None;
        }
    };
    match amount.parse(currency) {
        Ok(amount) if amount > Amount::ZERO => Some(amount.of(currency)),
        Ok(_) => {
            refuse(wrong, "amount", "expected more than nothing");
            None
        }
        Err(error) => {
            refuse(wrong, "amount", error.to_string());
            None
        }
    }
}

fn check_destination(strings: &BTreeMap<String, String>, wrong: &mut Vec<Detail>) {
    match strings.get(WAY) {
        Some(way) if WAYS.contains(&way.as_str()) => {}
        Some(_) => refuse(wrong, "destination.type", "expected bank_account, card or other"),
        None => refuse(wrong, "destination.type", "missing field `type`"),
    }
    let fits = |text: &str, most: usize| {
        (1..=most).contains(&text.chars().count()) && !text.contains(char::is_control)
    };
    if !strings
        .iter()
        .all(|(name, value)| fits(name, MAX_NAME) && fits(value, MAX_VALUE))
    {
        let message = format!(
            "expected names of 1 to {MAX_NAME} and strings of 1 to {MAX_VALUE} characters, without control characters"
        );
        refuse(wrong, "destination", message);
    }
    if strings.len() > MAX_STRINGS {
        refuse(
            wrong,
            "destination",
            format!("expected at most {MAX_STRINGS} strings"),
        );
    }
}

/// The way as it is; of the others the end, where enough is left that nobody sees.
fn masked(name: &str, value: &str) -> String {
    if name == WAY {
        return value.to_owned();
    }
    let count = value.chars().count();
    let shown = if count >= 2 * SHOWN { SHOWN } else { 0 };
    let end: String = value.chars().skip(count - shown).collect();
    format!("{MASK}{end}")
}

/// A JSON object of strings. `type` comes first, as it decides what the others are.
fn text(strings: &BTreeMap<String, String>, shown: impl Fn(&str, &str) -> String) -> String {
    let (way, others): (Vec<_>, Vec<_>) = strings.iter().partition(|(name, _)| *name == WAY);
    let pairs = way.into_iter().chain(others).map(|(name, value)| {
        let value = shown(name, value);
        format!("{}:{}", serde_json::json!(name), serde_json::json!(value))
    });
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
}

fn refuse(wrong: &mut Vec<Detail>, field: &str, message: impl Into<String>) {
    wrong.push(Detail {
        field: field.to_owned(),
        message: message.into(),
    });
}

impl<'de> Deserialize<'de> for PayoutDestination {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Strings).map(Self)
    }
}

/// Reads an object of strings, each name once.
struct Strings;

impl<'de> Visitor<'de> for Strings {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut strings = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            match strings.entry(name) {
                Entry::Vacant(entry) => drop(entry.insert(value)),
                Entry::Occupied(_) => return Err(A::Error::custom("a name is repeated")),
            }
        }
        Ok(strings)
    }
}

impl PartialSchema for PayoutDestination {
    fn schema() -> RefOr<Schema> {
        let text = |most: usize| {
            ObjectBuilder::new()
                .schema_type(Type::String)
                .min_length(Some(1))
                .max_length(Some(most))
                .pattern(Some(r"^[^\u0000-\u001f\u007f-\u009f]*$"))
        };
        let way = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("By which way."))
            .enum_values(Some(WAYS));
        let destination = ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some(
                "By which way money leaves, and whatever strings whoever pays needs: an IBAN, a name. They are shown masked: of \
                 each the last four characters at most.",
            ))
            .property(WAY, way)
            .required(WAY)
            .max_properties(Some(MAX_STRINGS))
            .property_names(Some(Schema::from(text(MAX_NAME).build())))
            .additional_properties(Some(AdditionalProperties::from(Schema::from(text(MAX_VALUE).build()))));
        destination.into()
    }
}

impl ToSchema for PayoutDestination {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::Code;

    fn request(destination: &str) -> Vec<u8> {
        format!(r#"{{"amount":"12.50","currency":"USD","destination":{destination}}}"#).into_bytes()
    }

    #[test]
    fn a_destination_is_kept_whole_and_shown_masked() {
        let wanted = parse(&request(
            r#"{"iban":"DE89370400440532013000","type":"bank_account","name":"Ann \"A\" Lee","bic":"X"}"#,
        ))
        .unwrap();
        assert_eq!(wanted.money.amount.minor(), 1_250);
        assert_eq!(
            wanted.destination,
            r#"{"type":"bank_account","bic":"X","iban":"DE89370400440532013000","name":"Ann \"A\" Lee"}"#
        );
        assert_eq!(
            wanted.masked,
            r#"{"type":"bank_account","bic":"****","iban":"****3000","name":"**** Lee"}"#
        );
    }

    #[test]
    fn what_cannot_be_paid_out_is_named() {
        let field = |body: &[u8]| {
            let error = parse(body).unwrap_err();
            assert_eq!(error.code, Code::ValidationFailed);
            error.details[0].field.clone()
        };
        for (destination, expected) in [
            ("{}", "destination.type"),
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
        ] {
            assert_eq!(field(body.as_bytes()), expected, "{body}");
        }
    }
}
