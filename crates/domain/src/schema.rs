//! OpenAPI schemas of types with hand-written serialization: ids, money, slugs. Other types derive theirs.
//!
//! A schema accepts exactly what the type's own reader and writer do.

use serde_json::json;
use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaFormat, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::ids::{
    AttemptId, BulkJobId, ChangeRequestId, CredentialId, DeliveryId, DriftId, EventId, OperatorSessionId,
    OperatorTokenId, OrderId, PartnerId, PayoutId, TransactionId, VoucherId, WebhookId,
};
use super::money::{AmountText, Currency, Money};
use super::operator::OperatorName;
use super::product::{MAX_SLUG_LENGTH, ProductId};
use super::text_schema::{described, text};
use super::webhook::MAX_URL_BYTES;

/// Digits of example ids. The time comes first, so that ids sort by it.
pub const EXAMPLE_DIGITS: &str = "0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";

/// Pattern of a decimal number as a text.
const DECIMAL: &str = r"^-?[0-9]+(\.[0-9]+)?$";

described! {
    PartnerId => prefixed_id(Self::PREFIX, "The id of a partner");
    CredentialId => prefixed_id(Self::PREFIX, "The public name of a credential");
    PayoutId => prefixed_id(Self::PREFIX, "The id of a payout");
    DriftId => prefixed_id(Self::PREFIX, "The id of a drift");
    OrderId => prefixed_id(Self::PREFIX, "The id of an order");
    VoucherId => prefixed_id(Self::PREFIX, "The id of a voucher as one order holds it");
    TransactionId => prefixed_id(Self::PREFIX, "The id of a transaction");
    EventId => prefixed_id(Self::PREFIX, "The id of an event, the same on every attempt to deliver it");
    AttemptId => prefixed_id(Self::PREFIX, "An attempt to deliver an event to a webhook endpoint");
    OperatorTokenId => prefixed_id(Self::PREFIX, "The public name of an operator's token");
    OperatorSessionId => prefixed_id(Self::PREFIX, "The id of an operator's session");
    BulkJobId => prefixed_id(Self::PREFIX, "The id of a bulk job");
    ChangeRequestId => prefixed_id(Self::PREFIX, "The id of a change request");
    DeliveryId => prefixed_id(Self::PREFIX, "The id of a delivery");
    WebhookId => prefixed_id(Self::PREFIX, "The id of a webhook endpoint");
    OperatorName => operator_name();
    ProductId => slug("The id of a product", "amzn-us");
    Currency => currency();
    Money => money();
    AmountText => amount_text();
    HttpUrl => http_url();
}

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

fn operator_name() -> Object {
    text("Name of an operator.")
        .pattern(Some("^[a-z0-9][a-z0-9.@-]{0,63}$"))
        .examples(["jane.doe"])
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

fn currency() -> Object {
    text("An ISO 4217 currency code that is in use, in capital letters.")
        .pattern(Some("^[A-Z]{3}$"))
        .examples(["USD"])
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
