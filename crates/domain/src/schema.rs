//! OpenAPI schemas of types with hand-written serialization: ids, money, slugs. Other types derive theirs.
//!
//! A schema accepts exactly what the type's own reader and writer do.

use serde_json::json;
use utoipa::openapi::schema::{
    AnyOfBuilder, KnownFormat, Object, ObjectBuilder, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::ids::{
    CredentialId, DeliveryId, DriftId, EventId, OrderId, PartnerId, PayoutId, TransactionId, VoucherId,
    WebhookId,
};
use super::money::{AmountText, Currency, Money};
use super::product::{MAX_SLUG_LENGTH, ProductId};
use super::webhook::MAX_URL_BYTES;

/// Digits of example ids. The time comes first, so that ids sort by it.
pub const EXAMPLE_DIGITS: &str = "0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";

/// Maximum bytes of a filter value: enough for 128 characters of any script and for every id.
pub const MAX_FILTER_BYTES: usize = 512;

/// Pattern of a decimal number as a text.
const DECIMAL: &str = r"^-?[0-9]+(\.[0-9]+)?$";

macro_rules! described {
    ($($name:ident => $schema:expr;)+) => {
        $(
            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    $schema.into()
                }
            }

            impl ToSchema for $name {}
        )+
    };
}

described! {
    PartnerId => prefixed_id(Self::PREFIX, "The id of a partner");
    CredentialId => prefixed_id(Self::PREFIX, "The public name of a credential");
    PayoutId => prefixed_id(Self::PREFIX, "The id of a payout");
    DriftId => prefixed_id(Self::PREFIX, "The id of a drift");
    OrderId => prefixed_id(Self::PREFIX, "The id of an order");
    VoucherId => prefixed_id(Self::PREFIX, "The id of a voucher as one order holds it");
    TransactionId => prefixed_id(Self::PREFIX, "The id of a transaction");
    EventId => prefixed_id(Self::PREFIX, "The id of an event, the same on every attempt to deliver it");
    DeliveryId => prefixed_id(Self::PREFIX, "The id of a delivery");
    WebhookId => prefixed_id(Self::PREFIX, "The id of a webhook endpoint");
    ProductId => slug("The id of a product", "amzn-us");
    Currency => currency();
    Money => money();
    AmountText => amount_text();
    FilterText => filter_text();
    DateOrTime => date_or_time();
    Country => country();
    CountryFilter => country_filter();
    CurrencyFilter => currency_filter();
    HttpUrl => http_url();
}

/// Text of a list filter.
#[derive(Debug)]
pub enum FilterText {}

/// End of a time range.
#[derive(Debug)]
pub enum DateOrTime {}

/// A country.
#[derive(Debug)]
pub enum Country {}

/// A country as a filter, which takes either case.
#[derive(Debug)]
pub enum CountryFilter {}

/// A currency as a filter, which takes either case.
#[derive(Debug)]
pub enum CurrencyFilter {}

/// A URL of a web server.
#[derive(Debug)]
pub enum HttpUrl {}

/// Schema of a prefixed id in its only spelling.
#[must_use]
pub fn prefixed_id(prefix: &str, description: &str) -> Object {
    text(&format!("{description}. Ids sort by creation time."))
        .pattern(Some(format!("^{prefix}[0-9a-f]{{32}}$")))
        .examples([format!("{prefix}{EXAMPLE_DIGITS}")])
        .build()
}

/// Schema of a product, category or vendor id.
#[must_use]
pub fn slug(description: &str, example: &str) -> Object {
    text(&format!(
        "{description}: 1 to {MAX_SLUG_LENGTH} of `a-z`, `0-9`, `-`, `_` and `.`, beginning with a letter or digit."
    ))
    .max_length(Some(MAX_SLUG_LENGTH))
    .pattern(Some(format!(
        "^[a-z0-9][a-z0-9._-]{{0,{}}}$",
        MAX_SLUG_LENGTH - 1
    )))
    .examples([example])
    .build()
}

fn text(description: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description))
}

fn filter_text() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(MAX_FILTER_BYTES))
        .pattern(Some(r"^[^\u0000]*$"))
        .build()
}

fn date_or_time() -> Schema {
    let text = |format| {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(format)))
    };
    AnyOfBuilder::new()
        .item(text(KnownFormat::Date))
        .item(text(KnownFormat::DateTime))
        .into()
}

fn currency() -> Object {
    text("An ISO 4217 currency code that is in use, in capital letters.")
        .pattern(Some("^[A-Z]{3}$"))
        .examples(["USD"])
        .build()
}

fn currency_filter() -> Object {
    text("An ISO 4217 currency code in either case.")
        .pattern(Some("^[A-Za-z]{3}$"))
        .examples(["USD"])
        .build()
}

fn country() -> Object {
    text("An ISO 3166-1 alpha-2 country code.")
        .pattern(Some("^[A-Z]{2}$"))
        .examples(["US"])
        .build()
}

fn country_filter() -> Object {
    text("An ISO 3166-1 alpha-2 country code in either case.")
        .pattern(Some("^[A-Za-z]{2}$"))
        .examples(["US"])
        .build()
}

fn http_url() -> Object {
    text("A URL with the scheme https or http.")
        .format(Some(SchemaFormat::Custom("uri".to_owned())))
        .max_length(Some(MAX_URL_BYTES))
        .pattern(Some(r"^https?://\S+$"))
        .examples(["https://shop.example/vouchsafe"])
        .build()
}

/// Format of a number that generated clients keep exact.
fn decimal() -> SchemaFormat {
    SchemaFormat::Custom("decimal".to_owned())
}

fn money() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Number)
        .format(Some(decimal()))
        .description(Some(
            "An exact amount, written with the decimals of its currency (`25.00` USD, `25` JPY, `25.000` KWD). Read it as \
             a decimal: a binary float does not hold every amount.",
        ))
        .examples([json!(25.5)])
        .build()
}

fn amount_text() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Number, Type::String]))
        .format(Some(decimal()))
        .description(Some(
            "An amount as a decimal number, or as a text with one. It has no more decimals than its currency, and no \
             exponent.",
        ))
        .pattern(Some(DECIMAL))
        .examples([json!(25), json!("25.00")])
        .build()
}
